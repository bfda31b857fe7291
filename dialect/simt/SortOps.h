// C++ declarations of the operations of SortOps.td, for the few files that look into them.

#pragma once

#include "dialect/simt/SimtDialect.h"

#define GET_OP_CLASSES
#include "dialect/simt/SortOps.h.inc"

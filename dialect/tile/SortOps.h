// C++ declarations of the operations of SortOps.td, for the files that lower them. Other files of the compiler only use
// the fact that such an operation needs its whole operands.

#pragma once

#include "dialect/tile/TileDialect.h"

#define GET_OP_CLASSES
#include "dialect/tile/SortOps.h.inc"

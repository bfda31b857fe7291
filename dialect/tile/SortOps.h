// C++ declarations of the operations of SortOps.td, for those who look into them: the compiler's other files know no
// more than that such an operation needs its operands whole.

#pragma once

#include "dialect/tile/TileDialect.h"

#define GET_OP_CLASSES
#include "dialect/tile/SortOps.h.inc"

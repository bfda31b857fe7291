// Math functions of floats: `sin(x)`, `atan2(y, x)`, …. Functions.def lists them with their error bounds. For NaN,
// infinities and ±0 they return the results of C's functions (dialect/NUMERICS.md). Functions that also take an
// Accuracy are in Tile.h, which includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

#define KILN_FUNCTION(name, ...) Tile name(At x);
#define KILN_FAST_FUNCTION(...)
#define KILN_FUNCTION_OF_TWO(name, ...) Tile name(At a, At b);
#define KILN_COMPOSITE_FUNCTION(name, ...) Tile name(At x);
#define KILN_COMPOSITE_FUNCTION_OF_TWO(name, ...) Tile name(At a, At b);
#include "dialect/tile/Functions.def"

} // namespace kiln

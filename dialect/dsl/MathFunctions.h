// Math functions of floats. Functions.def lists all of them with their error bounds. For NaN, infinities and ±0 they
// behave as the C functions of these names (dialect/NUMERICS.md). Functions that also have Accuracy::fast are in
// Tile.h, which includes this.

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

// Functions of floats: Functions.def lists all of them, with what they are and how far each may be off; of NaN,
// infinities and ±0 they are what C's functions of these names are, as dialect/NUMERICS.md says. Those that may be fast
// are declared in Tile.h, which includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

#define KILN_FUNCTION(name, ...) Tile name(At x);
#define KILN_FAST_FUNCTION(...)
#define KILN_FUNCTION_OF_TWO(name, ...) Tile name(At a, At b);
#define KILN_SPELT_FUNCTION(name, ...) Tile name(At x);
#define KILN_SPELT_FUNCTION_OF_TWO(name, ...) Tile name(At a, At b);
#include "dialect/tile/Functions.def"

} // namespace kiln

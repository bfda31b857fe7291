// Rounding to a narrow type, to nearest or stochastically. If updates are below half a unit in the last place, a narrow
// weight rounded to nearest never changes. Rounded stochastically it changes by a whole unit often enough to make up
// for that.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// How narrow weights are rounded.
enum class WeightRounding { nearest, stochastic };
/// Names of the roundings, in the order of the enumeration.
inline const std::vector<std::string> roundingNames = {"nearest", "stochastic"};

/// Rounds `x` (f32) to one of the two neighbours in `type`, bf16 or f16. The nearer neighbour is likelier, so that the
/// mean is x. `uniform` (f32) in [0, 1), of x's shape, decides. A number of `type` does not change, and no value
/// becomes infinite that is finite when rounded to nearest.
Tile roundStochastically(Tile x, Type type, Tile uniform);

} // namespace kiln

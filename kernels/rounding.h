// Rounding to a narrow type, to nearest or stochastically. If each update is below half a unit in the last place, a
// narrow weight rounded to nearest never changes. With stochastic rounding it sometimes changes by a whole unit, so
// that the expected value of the weight is exact.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// How narrow weights are rounded.
enum class WeightRounding { nearest, stochastic };
/// Names of the roundings, in the order of the enumeration.
inline const std::vector<std::string> roundingNames = {"nearest", "stochastic"};

/// Rounds `x` (f32) to one of its two neighbours in `type`, bf16 or f16. Each has the probability that makes x the
/// expected value. `uniform` (f32) in [0, 1), of x's shape, selects the neighbour. A number of `type` does not change.
/// A result is infinite only if rounding to nearest gives infinity too.
Tile roundStochastically(Tile x, Type type, Tile uniform);

} // namespace kiln

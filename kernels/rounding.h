// Rounding to a narrow type, to nearest or by chance. A weight that is kept narrow and changes by less than half a unit
// in its last place never changes when each sum is rounded to nearest; rounded by chance it changes by a whole unit as
// often as makes up for that.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// How narrow weights are rounded.
enum class Rounding { nearest, stochastic };
/// Their names, in this order.
inline const std::vector<std::string> roundingNames = {"nearest", "stochastic"};
/// The rounding called `text`; throws Error for another text.
Rounding roundingNamed(const std::string &text);

/// `x` (f32) as one of the two numbers of `type`, bf16 or f16, next to it: each as likely as x is close to it, so that
/// the mean is x. `uniform` (f32) in [0, 1), of x's shape, decides. A number of `type` stays what it is; nothing that
/// is finite to nearest becomes infinite.
Tile roundStochastically(Tile x, Type type, Tile uniform);

} // namespace kiln

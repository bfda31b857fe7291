// The role of a parameter in the optimizer.

#pragma once

#include <array>

namespace kiln {

/// The role of a parameter, which decides its weight decay. A fixed one is a constant table of the model: it gets no
/// gradient and no update.
enum class Role { matrix, table, gain, bias, fixed };

/// Which parameters have weight decay: matrices and embedding tables; those and LayerNorm gains (all that are not
/// initialised to zero); or all.
enum class DecayOn { matrices, nonzero, all };
/// Names of the values, in the order of the enumeration.
inline constexpr std::array<const char *, 3> decayOnNames = {"matrices", "nonzero", "all"};
bool decays(Role role, DecayOn policy);

} // namespace kiln

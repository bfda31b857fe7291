// What a parameter is to the optimiser.

#pragma once

#include <array>

namespace kiln {

/// What a parameter is, from which follows whether it decays. A fixed one is no parameter at all, but a table that
/// comes with the model: no gradient reaches it and no update moves it.
enum class Role { matrix, table, gain, bias, fixed };

/// Which parameters decay: matrices and tables; those and gains, hence all but what begins at zero; or all.
enum class DecayOn { matrices, seed001, all };
/// Their names, in this order.
inline constexpr std::array<const char *, 3> decayOnNames = {"matrices", "seed001", "all"};
bool decays(Role role, DecayOn policy);

} // namespace kiln

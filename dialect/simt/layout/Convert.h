// Conversions from one layout of a tile to another, by the cheapest means.
//
// A plan describes one core and is executed for each repeat. Its register numbers are those of the core; the stored
// index of a repeat is larger by repeat · 2^(register bits).

#pragma once

#include "dialect/simt/layout/SharedPlan.h"
#include "dialect/simt/layout/Shuffle.h"

#include <variant>

namespace kiln::simt {

struct ConvertPlan {
  Tier tier = Tier::identity;
  std::variant<ShufflePlan, SharedPlan> how; // a SharedPlan if the tier is Tier::shared

  bool isShared() const { return tier == Tier::shared; }
  const ShufflePlan &shuffle() const { return std::get<ShufflePlan>(how); }
  const SharedPlan &shared() const { return std::get<SharedPlan>(how); }
};

/// The cost of the two barriers around an exchange through shared memory, in instructions.
inline constexpr unsigned barriersWorth = 32;

/// The cheapest conversion between two layouts with equal shapes, numbers of warps and block bases. `bits` is the size
/// of an element, 8 to 64. Shuffles usually cost less than shared memory: with whole 32-bit words there are at most
/// half as many shuffles as wavefronts. There are two exceptions: narrow elements that do not fill words, and lanes
/// that select among many words. The latter occurs when a blocked tile becomes an operand of products; the selections
/// then cost more than shared memory with its barriers.
ConvertPlan planConvert(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits);

} // namespace kiln::simt

// Conversions from one layout of a tile to another, by the cheapest means.
//
// A plan is for one core and is carried out for each repeat; what it says of stored indices is the register part, to
// which repeat · 2^(register bits) is added.

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

/// What the two barriers round a tile in shared memory are worth, in instructions.
inline constexpr unsigned barriersWorth = 32;

/// The cheapest conversion between layouts of one shape and one number of warps, with the same bases of blocks; `bits`
/// of an element, 8 to 64. Shuffles, one pass through the lanes' crossbar each, are preferred to shared memory, a pass
/// for each wavefront: whole words make at most half as many. Narrow elements that do not fill words can need more, and
/// where lanes select among many words, as when a blocked tile becomes an operand of products, selections cost more
/// than shared memory and its barriers do.
ConvertPlan planConvert(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits);

} // namespace kiln::simt

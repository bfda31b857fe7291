// The choice between shuffles and shared memory.

#include "dialect/simt/layout/Convert.h"

namespace kiln::simt {

ConvertPlan planConvert(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits) {
  std::optional<ShufflePlan> shuffle = planShuffle(from, to, bits);
  const bool fillsWords = shuffle && bits << shuffle->target.element.size() >= 32;
  const unsigned instructions = shuffle ? shuffle->instructions(bits) : 0;
  const unsigned words = shuffle ? shuffle->rounds() * std::max(1u, bits / 32) : 0;
  if (shuffle && (shuffle->shuffles(bits) == 0 || (fillsWords && instructions <= 2 * words + barriersWorth)))
    return {tierOf(from, to), std::move(*shuffle)};
  SharedPlan shared = planShared(from, to, bits, limits);
  if (shuffle && (fillsWords ? instructions <= shared.wavefronts() + barriersWorth
                             : shuffle->shuffles(bits) <= shared.wavefronts()))
    return {Tier::shuffle, std::move(*shuffle)};
  return {Tier::shared, std::move(shared)};
}

} // namespace kiln::simt

// The choice between shuffles and shared memory.

#include "dialect/simt/layout/Convert.h"

namespace kiln::simt {

ConvertPlan planConvert(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits) {
  std::optional<ShufflePlan> shuffle = planShuffle(from, to, bits);
  if (shuffle && (shuffle->shuffles(bits) == 0 || bits << shuffle->target.element.size() >= 32))
    return {tierOf(from, to), std::move(*shuffle)};
  SharedPlan shared = planShared(from, to, bits, limits);
  if (shuffle && shuffle->shuffles(bits) <= shared.wavefronts())
    return {Tier::shuffle, std::move(*shuffle)};
  return {Tier::shared, std::move(shared)};
}

} // namespace kiln::simt

// Chooses strides in shared memory.

#include "lowering/gpu/SharedPlace.h"

#include "lowering/gpu/SharedTraffic.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::lowering::gpu {

/// Bytes of one row of shared memory's banks, and the skew that moves a row to other banks.
static constexpr int64_t bankRowBytes = 128, skewBytes = 16;

/// Dimensions of `order`, fastest first.
static Place placeBy(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> sizes, int64_t bytes, bool isSkewed) {
  Place place{llvm::SmallVector<int64_t>(sizes.size()), bytes};
  bool isRow = isSkewed; // for the first dimension of extent above 1
  for (const unsigned dim : order) {
    place.strides[dim] = place.bytes;
    place.bytes *= sizes[dim];
    if (sizes[dim] == 1 || !isRow)
      continue;
    isRow = false;
    const bool hasRows = llvm::any_of(llvm::seq<size_t>(0, sizes.size()),
                                      [&](size_t other) { return other != dim && sizes[other] > 1; });
    if (!hasRows || place.bytes < skewBytes)
      continue;
    place.bytes = llvm::alignTo(place.bytes, skewBytes);
    place.bytes += place.bytes % bankRowBytes == 0 ? skewBytes : 0;
  }
  return place;
}

static llvm::SmallVector<unsigned> rowMajor(size_t rank) {
  return llvm::to_vector(llvm::reverse(llvm::seq<unsigned>(0, static_cast<unsigned>(rank))));
}

Place densePlace(llvm::ArrayRef<int64_t> sizes, int64_t bytes) {
  return placeBy(rowMajor(sizes.size()), sizes, bytes, /*isSkewed=*/false);
}

Place cheapestPlace(llvm::ArrayRef<int64_t> sizes, int64_t bytes, llvm::ArrayRef<Use> uses) {
  const auto costOf = [&](const Place &place) {
    int64_t cost = 0;
    for (const Use &use : uses) {
      const SharedTraffic traffic = trafficOf(use.layout, bytes, place.strides, skewBytes);
      cost += use.times * (traffic.wavefronts + traffic.instructions);
    }
    return cost;
  };
  const llvm::SmallVector<unsigned> usual = rowMajor(sizes.size());
  Place best = placeBy(usual, sizes, bytes, /*isSkewed=*/true);
  if (llvm::count_if(sizes, [](int64_t size) { return size > 1; }) < 2)
    return best;
  int64_t lowest = costOf(best);
  for (const unsigned fastest : llvm::drop_begin(usual)) {
    if (sizes[fastest] == 1)
      continue;
    llvm::SmallVector<unsigned> order = {fastest};
    llvm::copy_if(usual, std::back_inserter(order), [&](unsigned dim) { return dim != fastest; });
    Place other = placeBy(order, sizes, bytes, /*isSkewed=*/true);
    if (const int64_t cost = costOf(other); cost < lowest)
      lowest = cost, best = std::move(other);
  }
  return best;
}

} // namespace kiln::lowering::gpu

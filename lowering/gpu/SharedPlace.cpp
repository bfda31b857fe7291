// Computes the vectors, bank conflicts and strides of tiles in shared memory.

#include "lowering/gpu/SharedPlace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace kiln::lowering::gpu {

// --- Accesses of the threads of a layout -----------------------------------------------------------------------------

using simt::Hw;
using simt::TileLayout;

int64_t offsetOf(llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> strides) {
  int64_t sum = 0;
  for (const auto [index, stride] : llvm::zip_equal(position, strides))
    sum += index * stride;
  return sum;
}

/// A common divisor of all threads' first addresses.
static int64_t alignmentOf(const TileLayout &layout, llvm::ArrayRef<int64_t> strides, int64_t alignment) {
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    for (const Hw part : {Hw::lane, Hw::warp})
      for (const simt::BitField &field : layout.fieldsOf(part, dim))
        alignment = std::gcd(alignment, strides[dim] << field.to);
  return alignment;
}

/// The bits of the register number that enumerate adjacent elements, lowest first, for at most 16 bytes.
static llvm::SmallVector<unsigned> neighbourBits(const TileLayout &layout, int64_t bytes,
                                                 llvm::ArrayRef<int64_t> strides) {
  llvm::SmallVector<unsigned> bits;
  for (int64_t distance = bytes; distance < 16; distance *= 2) {
    unsigned bit = 0;
    while (bit < layout.regBits() && offsetOf(layout.positionOf(int64_t{1} << bit), strides) != distance)
      ++bit;
    if (bit == layout.regBits())
      break;
    bits.push_back(bit);
  }
  return bits;
}

/// The vectors whose elements these bits enumerate; none if addresses are not aligned.
static std::optional<std::vector<SharedVector>> vectorsBy(llvm::ArrayRef<unsigned> bits, const TileLayout &layout,
                                                          int64_t bytes, llvm::ArrayRef<int64_t> strides) {
  int64_t mask = 0;
  for (const unsigned bit : bits)
    mask |= int64_t{1} << bit;
  std::vector<SharedVector> vectors;
  for (int64_t first = 0; first < layout.numStored(); ++first) {
    if ((first & mask) || layout.isDead(first))
      continue;
    if (offsetOf(layout.positionOf(first), strides) % (bytes << bits.size()) != 0)
      return std::nullopt;
    SharedVector vector;
    for (unsigned element = 0; element < 1u << bits.size(); ++element) {
      int64_t stored = first;
      for (const auto [order, bit] : llvm::enumerate(bits))
        stored |= static_cast<int64_t>(element >> order & 1) << bit;
      vector.push_back(stored);
    }
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

std::vector<SharedVector> sharedVectors(const TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides,
                                        int64_t alignment) {
  alignment = alignmentOf(layout, strides, alignment);
  for (llvm::SmallVector<unsigned> bits = neighbourBits(layout, bytes, strides);; bits.pop_back()) {
    // A vector must not cross the tile's end.
    const bool isWhole = llvm::all_of(layout.shape().dims(), [&](const simt::Extent &extent) {
      return !extent.isPadded() || extent.size % (int64_t{1} << bits.size()) == 0;
    });
    if (bits.empty() || (isWhole && alignment % (bytes << bits.size()) == 0))
      if (auto vectors = vectorsBy(bits, layout, bytes, strides))
        return *vectors;
  }
}

/// Wavefronts in which the banks serve words, and the minimum.
static std::pair<int64_t, int64_t> wavefrontsOf(llvm::SmallVectorImpl<int64_t> &words) {
  static constexpr int64_t numBanks = 32;
  llvm::sort(words);
  words.erase(llvm::unique(words), words.end());
  std::array<int64_t, numBanks> load{};
  for (const int64_t word : words)
    ++load[static_cast<size_t>(word % numBanks)];
  return {*llvm::max_element(load), llvm::divideCeil(words.size(), numBanks)};
}

SharedTraffic trafficOf(const TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides, int64_t alignment) {
  static constexpr int64_t wordBytes = 4, wavefrontBytes = 128;
  const std::vector<SharedVector> vectors = sharedVectors(layout, bytes, strides, alignment);
  SharedTraffic traffic;
  traffic.instructions = static_cast<int64_t>(vectors.size());
  if (vectors.empty())
    return traffic;
  traffic.vectorBytes = static_cast<int64_t>(vectors[0].size()) * bytes;
  // Long vectors are served for a part of the lanes at a time.
  const auto lanesAtOnce =
      static_cast<unsigned>(std::min<int64_t>(wavefrontBytes / traffic.vectorBytes, simt::numLanes));
  for (const SharedVector &vector : vectors)
    for (unsigned first = 0; first < simt::numLanes; first += lanesAtOnce) {
      llvm::SmallVector<int64_t, 64> words;
      for (unsigned lane = first; lane < first + lanesAtOnce; ++lane) {
        const int64_t begin = offsetOf(layout.positionOf(vector[0], {.lane = lane}), strides);
        for (int64_t word = begin / wordBytes; word <= (begin + traffic.vectorBytes - 1) / wordBytes; ++word)
          words.push_back(word);
      }
      const auto [wavefronts, ideal] = wavefrontsOf(words);
      traffic.wavefronts += wavefronts;
      traffic.ideal += ideal;
    }
  return traffic;
}

// --- Placement -------------------------------------------------------------------------------------------------------

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

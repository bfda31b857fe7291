// Vectors and bank conflicts.

#include "lowering/gpu/SharedTraffic.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace kiln::lowering::gpu {

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

} // namespace kiln::lowering::gpu

// Layouts that assign units to registers, lanes and warps in memory order.

#include "dialect/simt/layout/Blocked.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>
#include <numeric>

namespace kiln::simt {

TileLayout blocked(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> perThread,
                   unsigned numWarps, int64_t line) {
  assert(order.size() == sizes.size() && perThread.size() == sizes.size() && llvm::has_single_bit(numWarps));
  const TileShape tile(sizes);
  Vecs regs, others, pastLine;
  for (const unsigned dim : order) {
    const Vecs units = tile.unitsOf(dim);
    const auto own = std::min<size_t>(units.size(), llvm::Log2_64(static_cast<uint64_t>(perThread[dim])));
    const bool isLined = line && dim == order.front();
    const auto end =
        isLined ? std::min<size_t>(units.size(), llvm::Log2_64(static_cast<uint64_t>(line))) : units.size();
    regs.append(units.begin(), units.begin() + own);
    others.append(units.begin() + own, units.begin() + std::max<size_t>(own, end));
    pastLine.append(units.begin() + std::max<size_t>(own, end), units.end());
  }
  others.append(pastLine);
  const size_t warpBits = llvm::Log2_32(numWarps);
  if (others.size() < laneBits + warpBits)
    others.resize(laneBits + warpBits, 0);
  const llvm::ArrayRef<Vec> rest(others);
  const llvm::ArrayRef<Vec> lanes = rest.take_front(laneBits), warps = rest.slice(laneBits, warpBits);
  regs.append(rest.drop_front(laneBits + warpBits).begin(), rest.end());
  return TileLayout::get(sizes, {regs, Vecs(lanes), Vecs(warps), Vecs()});
}

llvm::SmallVector<unsigned> orderOf(const Access &access) {
  const auto key = [&](unsigned dim) {
    const int64_t stride = access.strides[dim];
    return std::pair(access.sizes[dim] == 1, stride == unknownStride ? INT64_MAX : std::abs(stride));
  };
  auto order = llvm::to_vector(llvm::reverse(llvm::seq(static_cast<unsigned>(access.sizes.size()))));
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return key(a) < key(b); });
  return order;
}

/// The largest number of contiguous elements, a power of two, that form an aligned vector of at most 16 bytes and
/// divide the tile's extent.
static int64_t alignedWidth(const Access &access, llvm::ArrayRef<unsigned> order) {
  int64_t divisor = std::gcd(access.divisibility, access.sizes[order.front()]);
  for (const unsigned dim : llvm::drop_begin(order))
    if (access.sizes[dim] > 1 && access.strides[dim] != unknownStride)
      divisor = std::gcd(divisor, access.strides[dim]);
  const auto aligned = static_cast<int64_t>(Vec{1} << llvm::countr_zero(static_cast<uint64_t>(divisor)));
  return std::min(int64_t{128 / access.bits}, aligned);
}

int64_t vectorWidth(const Access &access, unsigned numWarps) {
  const llvm::SmallVector<unsigned> order = orderOf(access);
  if (order.empty() || access.strides[order.front()] != 1)
    return 1;
  const TileShape tile(access.sizes);
  const unsigned threadBits = laneBits + llvm::Log2_32(numWarps);
  const int64_t share = int64_t{1} << (std::max(tile.coreBits(), threadBits) - threadBits);
  return std::min({alignedWidth(access, order), tile[order.front()].core(), share});
}

TileLayout coalesced(const Access &access, unsigned numWarps, bool wholeRows) {
  const llvm::SmallVector<unsigned> order = orderOf(access);
  llvm::SmallVector<int64_t> perThread(order.size(), 1);
  if (!order.empty())
    perThread[order.front()] = vectorWidth(access, numWarps);
  const int64_t line = wholeRows && !order.empty() ? perThread[order.front()] * numLanes : 0;
  return blocked(access.sizes, order, perThread, numWarps, line);
}

/// The number of elements that a thread of the layout moves at once: those of its lowest registers that are adjacent.
static int64_t vectorOf(const Access &access, const TileLayout &layout) {
  const llvm::SmallVector<unsigned> order = orderOf(access);
  if (order.empty() || access.strides[order.front()] != 1)
    return 1;
  const int64_t most = alignedWidth(access, order);
  int64_t vector = 1;
  for (const auto [unit, basis] : llvm::zip(layout.shape().unitsOf(order.front()), layout.bases(Hw::reg))) {
    if (unit != basis || vector == most)
      break;
    vector *= 2;
  }
  return vector;
}

Traffic trafficOf(const Access &access, const TileLayout &layout) {
  constexpr int64_t farApart = int64_t{1} << 20, sectorBits = 256;
  Traffic traffic{.vector = vectorOf(access, layout)};
  traffic.vectors = layout.numStored() / traffic.vector;
  llvm::SmallDenseSet<int64_t> vectors, sectors;
  for (unsigned lane = 0; lane < numLanes; ++lane) {
    int64_t element = 0;
    for (const auto [position, stride] : llvm::zip(layout.positionOf(0, {.lane = lane}), access.strides))
      element += position * (stride == unknownStride ? farApart : stride);
    vectors.insert(element);
    for (int64_t each = element; each < element + traffic.vector; ++each)
      sectors.insert(llvm::divideFloorSigned(each * access.bits, sectorBits));
  }
  traffic.bytes = static_cast<int64_t>(vectors.size()) * traffic.vector * access.bits / 8;
  traffic.sectors = static_cast<int64_t>(sectors.size());
  return traffic;
}

} // namespace kiln::simt

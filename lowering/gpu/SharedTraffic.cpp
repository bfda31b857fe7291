// Packets, and the banks that they lie in.

#include "lowering/gpu/SharedTraffic.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
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

int64_t sharedPacket(const TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides, int64_t alignment) {
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    for (const Hw part : {Hw::lane, Hw::warp})
      for (const simt::BitField &field : layout.fieldsOf(part, dim))
        alignment = std::gcd(alignment, strides[dim] << field.to);
  const auto fits = [&](int64_t packet) {
    if (alignment % (packet * bytes) != 0)
      return false;
    for (int64_t stored = 0; stored < layout.numStored(); stored += packet) {
      const int64_t first = offsetOf(layout.positionOf(stored), strides);
      if (first % (packet * bytes) != 0)
        return false;
      for (int64_t next = 1; next < packet; ++next)
        if (offsetOf(layout.positionOf(stored + next), strides) != first + next * bytes)
          return false;
    }
    // A packet that crosses the tile's end would be neither in nor out.
    return llvm::all_of(layout.shape().dims(),
                        [&](const simt::Extent &extent) { return !extent.isPadded() || extent.size % packet == 0; });
  };
  int64_t packet = std::min<int64_t>(16 / bytes, int64_t{1} << layout.regBits());
  while (packet > 1 && !fits(packet))
    packet /= 2;
  return packet;
}

SharedTraffic trafficOf(const TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides, int64_t alignment) {
  static constexpr int64_t wordBytes = 4, numBanks = 32;
  const int64_t packet = sharedPacket(layout, bytes, strides, alignment);
  SharedTraffic traffic{.packetBytes = packet * bytes};
  // Long packets are served some lanes at a time.
  const unsigned lanesAtOnce =
      static_cast<unsigned>(std::clamp<int64_t>(numBanks * wordBytes / traffic.packetBytes, 1, simt::numLanes));
  for (int64_t stored = 0; stored < layout.numStored(); stored += packet) {
    if (layout.isDead(stored))
      continue;
    ++traffic.instructions;
    for (unsigned first = 0; first < simt::numLanes; first += lanesAtOnce) {
      std::array<llvm::SmallSet<int64_t, 32>, numBanks> words;
      size_t most = 0, all = 0;
      for (unsigned lane = first; lane < first + lanesAtOnce; ++lane) {
        const int64_t begin = offsetOf(layout.positionOf(stored, {.lane = lane}), strides);
        for (int64_t word = begin / wordBytes; word <= (begin + traffic.packetBytes - 1) / wordBytes; ++word)
          all += words[static_cast<size_t>(word % numBanks)].insert(word).second;
      }
      for (const auto &bank : words)
        most = std::max(most, bank.size());
      traffic.wavefronts += static_cast<int64_t>(most);
      traffic.ideal += static_cast<int64_t>(llvm::divideCeil(all, numBanks));
    }
  }
  return traffic;
}

} // namespace kiln::lowering::gpu

// The swizzles of TMA and wgmma: within 128 bytes, 16-byte chunks change places by the row that they are in.

#pragma once

#include <cstdint>

namespace kiln::simulator {

/// Bytes of a row that is swizzled: 32, 64 or 128; 0 for none. Names are tensor-map and PTX numbers.
enum class Swizzle : uint8_t { none, bytes32, bytes64, bytes128 };
inline constexpr uint32_t bytesOf(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 0 : 16u << static_cast<int>(swizzle);
}

/// Where in shared memory a byte lies that would lie at `place` without a swizzle: bits 4 to 6 of the address, as many
/// as the row has chunks, are exclusive-ored with bits 7 to 9.
inline constexpr uint32_t swizzled(uint32_t place, Swizzle swizzle) {
  if (swizzle == Swizzle::none)
    return place;
  return place ^ (place >> 3 & (bytesOf(swizzle) - 16));
}

} // namespace kiln::simulator

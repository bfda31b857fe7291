// The swizzles of TMA and wgmma: within 128 bytes, 16-byte chunks are permuted depending on their row.

#pragma once

#include <cstdint>

namespace kiln::simulator {

/// The bytes of a swizzled row: 32, 64 or 128; 0 for none. Values are those of tensor maps and PTX.
enum class Swizzle : uint8_t { none, bytes32, bytes64, bytes128 };
inline constexpr uint32_t bytesOf(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 0 : 16u << static_cast<int>(swizzle);
}

/// The swizzled place in shared memory of a byte at `place`: bits 4 to 6 of the address, as many as the row has chunks,
/// are XORed with bits 7 to 9.
inline constexpr uint32_t swizzled(uint32_t place, Swizzle swizzle) {
  if (swizzle == Swizzle::none)
    return place;
  return place ^ (place >> 3 & (bytesOf(swizzle) - 16));
}

} // namespace kiln::simulator

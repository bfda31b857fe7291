// The numbers that dropout keeps, by the definition in kernels/dropout_rng.h with an independent Philox: one element at
// a time.

#pragma once

#include <array>
#include <cstdint>

namespace kiln::test {

/// Philox-4x32-10 with the number as the low half of its counter. Salmon et al. 2011.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t number) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0};
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
  }
  return c;
}

/// Whether the element at `column` of row `row` of a rngState is kept, with rows of C elements, if `threshold` of 65536
/// are dropped.
inline bool isKept(int64_t key, int64_t row, int64_t C, int64_t column, int64_t threshold) {
  const int64_t unit = row * ((C + 127) / 128) + column / 128, part = column % 128 / 16, lane = column % 16;
  const uint32_t word = philox(static_cast<uint64_t>(key), static_cast<uint64_t>(unit * 16 + lane))[part / 2];
  return static_cast<int64_t>(word >> (part % 2 * 16) & 0xFFFF) >= threshold;
}

} // namespace kiln::test

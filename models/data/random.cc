// Philox 4x32-10 and the distributions drawn with it.

#include "models/data/random.h"

#include <cmath>
#include <numeric>

namespace kiln {

std::array<uint32_t, 4> Random::block(uint64_t index, uint32_t lane) const {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), lane, stream};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

static uint64_t joined(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

uint64_t Random::below(uint64_t bound, uint64_t index) const {
  const std::array<uint32_t, 4> bits = block(index);
  return static_cast<uint64_t>(static_cast<unsigned __int128>(joined(bits[0], bits[1])) * bound >> 64);
}

double Random::uniform(uint64_t index) const {
  const std::array<uint32_t, 4> bits = block(index);
  return static_cast<double>(joined(bits[0], bits[1]) >> 11) * 0x1p-53;
}

std::vector<float> Random::normals(int64_t count, double deviation, uint32_t lane) const {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; i += 2) {
    const std::array<uint32_t, 4> bits = block(i / 2, lane);
    const double radius = std::sqrt(-2 * std::log((static_cast<double>(joined(bits[0], bits[1]) >> 11) + 1) * 0x1p-53));
    const double angle = 2 * M_PI * (static_cast<double>(joined(bits[2], bits[3]) >> 11) * 0x1p-53);
    values[i] = static_cast<float>(deviation * radius * std::cos(angle));
    if (i + 1 < count)
      values[i + 1] = static_cast<float>(deviation * radius * std::sin(angle));
  }
  return values;
}

std::vector<float> Random::uniforms(int64_t count, double bound, uint32_t lane) const {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(bound * (block(i / 4, lane)[i % 4] * 0x1p-31 - 1));
  return values;
}

void shuffle(std::vector<int64_t> &order, int64_t count, const Random &random, uint64_t counter) {
  order.resize(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[random.below(i + 1, counter + i)]);
}

} // namespace kiln

// A uniformly distributed number from a hash of seed and input.

#include "runtime/simulator/Approximation.h"

#include <cmath>

namespace kiln::simulator {

double withError(double y, AllowedError allowed, int times, uint64_t seed, uint64_t input) {
  if (y == 0 || !std::isfinite(y))
    return y;
  uint64_t bits = (input ^ seed * 0x9e3779b97f4a7c15) + 0x632be59bd9b4e019; // splitmix64
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  const double part = static_cast<double>(static_cast<int64_t>(bits ^ bits >> 31)) * 0x1p-63; // in [−1, 1)
  return y + part * times * (allowed.relative * std::fabs(y) + allowed.absolute);
}

} // namespace kiln::simulator

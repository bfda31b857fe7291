// Random numbers that depend on a seed, a stream and a counter only (Philox 4x32-10, Salmon et al. 2011). Nothing is
// carried from one draw to the next, so that the state of a run is its seed and how far it has counted.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kiln {

/// What a stream of random numbers is for; streams of one seed are independent.
enum class Stream : uint32_t { weights = 1, batches = 2, sampling = 3, packing = 4, dropout = 5 };

class Random {
public:
  Random(uint64_t seed, Stream stream) : seed(seed), stream(static_cast<uint32_t>(stream)) {}

  /// Four independent 32-bit numbers for (`index`, `lane`).
  std::array<uint32_t, 4> block(uint64_t index, uint32_t lane = 0) const;
  /// A number in [0, bound) for `index`; bound ≥ 1.
  uint64_t below(uint64_t bound, uint64_t index) const;
  /// A number in [0, 1) for `index`, a multiple of 2⁻⁵³.
  double uniform(uint64_t index) const;
  /// `count` normal deviates of mean 0 for (`lane`), by Box and Muller's transform.
  std::vector<float> normals(int64_t count, double deviation, uint32_t lane) const;
  /// `count` numbers in [−bound, bound) for (`lane`), of 2³² that are evenly spaced.
  std::vector<float> uniforms(int64_t count, double bound, uint32_t lane) const;

private:
  uint64_t seed;
  uint32_t stream;
};

/// 0 … count − 1 in random order (Fisher and Yates), drawn with numbers from `counter` on, of which it takes `count`.
void shuffle(std::vector<int64_t> &order, int64_t count, const Random &random, uint64_t counter);

} // namespace kiln

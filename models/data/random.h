// Random numbers that depend only on a seed, a stream and a counter (Philox 4x32-10, Salmon et al. 2011). Draws have no
// state, so the random state of a run is its seed and its counters.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kiln {

/// The use of a stream of random numbers; streams of one seed are independent.
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
  /// `count` numbers in [−bound, bound) for (`lane`), out of 2³² evenly spaced ones.
  std::vector<float> uniforms(int64_t count, double bound, uint32_t lane) const;

private:
  uint64_t seed;
  uint32_t stream;
};

/// The numbers 0 … count − 1 in random order (Fisher and Yates), drawn with `count` numbers from `counter` on.
void shuffle(std::vector<int64_t> &order, int64_t count, const Random &random, uint64_t counter);

} // namespace kiln

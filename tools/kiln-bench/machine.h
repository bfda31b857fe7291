// The peaks of this machine's cores: multiply-adds from registers, and a plain copy of memory. Progress
// bars and benchmarks show speeds as shares of these.

#pragma once

#include <cstdint>
#include <vector>

namespace kiln::bench {

/// Instructions that multiply and add. `run` does 192 of them, or as much, a round, with no memory access.
struct CoreUnit {
  const char *name;
  float (*run)(int64_t rounds);
  int products; // of one instruction
};

/// Those of this machine's cores: first f32 multiply-adds of native vectors, then sums of pairs of bf16 and of quads of
/// i8, and products of tiles of either, where it has them.
std::vector<CoreUnit> coreUnits();

/// Rounds that take some ten milliseconds: long beside what starting and joining the threads costs.
inline constexpr int64_t peakRounds = 400000;

/// Runs the unit for so many rounds on each of `threads` threads. Returns the operations done, two a product.
double runPeak(const CoreUnit &unit, int threads, int64_t rounds = peakRounds);

/// Copies `count` floats with ordinary loads and stores of native vectors, each thread its own part.
void copyFloats(float *to, const float *from, int64_t count, int threads);

} // namespace kiln::bench

// The peaks of this machine's cores: multiply-adds from registers, and a plain copy of memory. Progress
// bars and benchmarks show speeds as shares of these.

#pragma once

#include <cstdint>
#include <vector>

namespace kiln::bench {

/// A multiply-add instruction. `run` executes 192 of them, or equal work, per round, without memory accesses.
struct CoreUnit {
  const char *name;
  float (*run)(int64_t rounds);
  int products; // of one instruction
};

/// The multiply-add instructions of this machine's cores: first f32 on native vectors; then, if it has them, pairs of
/// bf16, quads of i8, and AMX tiles of both.
std::vector<CoreUnit> coreUnits();

/// Rounds that take about ten milliseconds, which is long compared with starting and joining the threads.
inline constexpr int64_t peakRounds = 400000;

/// Runs the unit for `rounds` rounds on each of `threads` threads. Returns the number of operations, two per product.
double runPeak(const CoreUnit &unit, int threads, int64_t rounds = peakRounds);

/// Copies `count` floats with ordinary loads and stores of native vectors, each thread its own part.
void copyFloats(float *to, const float *from, int64_t count, int threads);

} // namespace kiln::bench

// What this machine's cores can do at best: fp32 multiply-adds from registers, and a plain copy of memory. Progress
// bars and benchmarks show speeds as shares of these.

#pragma once

#include <cstdint>

namespace kiln::bench {

/// Runs `rounds` × 192 independent multiply-adds of native vectors on each of `threads` threads, with no memory access.
/// Returns the floating-point operations done, two a multiply-add and lane.
double runMultiplyAdds(int threads, int64_t rounds);

/// Rounds that take some ten milliseconds: long beside what starting and joining the threads costs.
inline constexpr int64_t peakRounds = 400000;

/// Copies `count` floats with ordinary loads and stores of native vectors, each thread its own part.
void copyFloats(float *to, const float *from, int64_t count, int threads);

} // namespace kiln::bench

// The loops behind machine.h. Those of f32 are written once for AVX-512 and once for AVX2 (the lowest CPU Kiln compiles
// for), and picked by what the processor says it has.

#include "tools/kiln-bench/machine.h"
#include "runtime/cpu/ThreadTeam.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <immintrin.h>
#include <numeric>
#include <vector>

using namespace kiln::bench;

// Twelve accumulators hide a latency of four to five cycles at two multiply-adds a cycle, and fit AVX2's 16 registers.
// The factor is just under one and the addend small, so that values stay ordinary numbers.
static constexpr int chains = 12, unrolled = 16;

__attribute__((target("avx512f"))) static float multiplyAdds512(int64_t rounds) {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(1.0f + 0.001f * static_cast<float>(i));
  __m512 factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(1e-3f);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (int u = 0; u < unrolled; ++u)
#pragma GCC unroll 12
      for (__m512 &sum : sums)
        sum = _mm512_fmadd_ps(sum, factor, addend);
  __m512 total = sums[0];
  for (int i = 1; i < chains; ++i)
    total = _mm512_add_ps(total, sums[i]);
  float lanes[16];
  _mm512_storeu_ps(lanes, total);
  return std::accumulate(lanes, lanes + 16, 0.0f);
}

__attribute__((target("avx2,fma"))) static float multiplyAdds256(int64_t rounds) {
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm256_set1_ps(1.0f + 0.001f * static_cast<float>(i));
  __m256 factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(1e-3f);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (int u = 0; u < unrolled; ++u)
#pragma GCC unroll 12
      for (__m256 &sum : sums)
        sum = _mm256_fmadd_ps(sum, factor, addend);
  __m256 total = sums[0];
  for (int i = 1; i < chains; ++i)
    total = _mm256_add_ps(total, sums[i]);
  float lanes[8];
  _mm256_storeu_ps(lanes, total);
  return std::accumulate(lanes, lanes + 8, 0.0f);
}

// Sums of narrow products grow slowly enough to stay numbers, or wrap.
__attribute__((target("avx512f,avx512bf16"))) static float pairs512(int64_t rounds) {
  __m512 sums[chains];
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  const __m512bh ones = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1), _mm512_set1_ps(1));
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (int u = 0; u < unrolled; ++u)
#pragma GCC unroll 12
      for (__m512 &sum : sums)
        sum = _mm512_dpbf16_ps(sum, ones, ones);
  __m512 total = sums[0];
  for (int i = 1; i < chains; ++i)
    total = _mm512_add_ps(total, sums[i]);
  return _mm512_reduce_add_ps(total);
}

__attribute__((target("avx512f,avx512vnni"))) static float quads512(int64_t rounds) {
  __m512i sums[chains];
  for (__m512i &sum : sums)
    sum = _mm512_setzero_si512();
  const __m512i ones = _mm512_set1_epi8(1);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (int u = 0; u < unrolled; ++u)
#pragma GCC unroll 12
      for (__m512i &sum : sums)
        sum = _mm512_dpbusd_epi32(sum, ones, ones);
  __m512i total = sums[0];
  for (int i = 1; i < chains; ++i)
    total = _mm512_add_epi32(total, sums[i]);
  return static_cast<float>(_mm512_reduce_add_epi32(total));
}

__attribute__((target("avx512f"))) static void copy512(float *to, const float *from, int64_t count) {
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m512 a = _mm512_loadu_ps(from + i), b = _mm512_loadu_ps(from + i + 16);
    __m512 c = _mm512_loadu_ps(from + i + 32), d = _mm512_loadu_ps(from + i + 48);
    _mm512_storeu_ps(to + i, a);
    _mm512_storeu_ps(to + i + 16, b);
    _mm512_storeu_ps(to + i + 32, c);
    _mm512_storeu_ps(to + i + 48, d);
  }
  for (; i < count; ++i)
    to[i] = from[i];
}

__attribute__((target("avx2"))) static void copy256(float *to, const float *from, int64_t count) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m256 a = _mm256_loadu_ps(from + i), b = _mm256_loadu_ps(from + i + 8);
    __m256 c = _mm256_loadu_ps(from + i + 16), d = _mm256_loadu_ps(from + i + 24);
    _mm256_storeu_ps(to + i, a);
    _mm256_storeu_ps(to + i + 8, b);
    _mm256_storeu_ps(to + i + 16, c);
    _mm256_storeu_ps(to + i + 24, d);
  }
  for (; i < count; ++i)
    to[i] = from[i];
}

static bool isWide() { return __builtin_cpu_supports("avx512f"); }

/// Calls part(0) … part(threads − 1), on as many threads.
static void onThreads(int threads, llvm::function_ref<void(int)> part) {
  std::atomic<int> next = 0;
  kiln::ThreadTeam::ofProcess().run(threads, [&] {
    for (int t; (t = next.fetch_add(1)) < threads;)
      part(t);
  });
}

std::vector<CoreUnit> kiln::bench::coreUnits() {
  std::vector<CoreUnit> units = {isWide() ? CoreUnit{"fma", multiplyAdds512, 16} : CoreUnit{"fma", multiplyAdds256, 8}};
  if (__builtin_cpu_supports("avx512bf16"))
    units.push_back({"bf16 pairs", pairs512, 32});
  if (__builtin_cpu_supports("avx512vnni"))
    units.push_back({"i8 quads", quads512, 64});
  return units;
}

double kiln::bench::runPeak(const CoreUnit &unit, int threads, int64_t rounds) {
  std::vector<float> results(static_cast<size_t>(threads));
  onThreads(threads, [&](int t) { results[static_cast<size_t>(t)] = unit.run(rounds); });
  // The results are used, so that no compiler may drop the loops.
  bool finite = std::all_of(results.begin(), results.end(), [](float r) { return std::isfinite(r); });
  return finite ? 2.0 * unit.products * chains * unrolled * static_cast<double>(rounds) * threads : 0;
}

void kiln::bench::copyFloats(float *to, const float *from, int64_t count, int threads) {
  onThreads(threads, [&](int t) {
    int64_t begin = count * t / threads, end = count * (t + 1) / threads;
    (isWide() ? copy512 : copy256)(to + begin, from + begin, end - begin);
  });
}

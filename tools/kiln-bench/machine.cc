// The loops behind machine.h. Those of f32 are written once for AVX-512 and once for AVX2 (the lowest CPU Kiln compiles
// for), and picked by what the processor says it has.

#include "tools/kiln-bench/machine.h"
#include "lowering/cpu/CpuTarget.h"
#include "runtime/cpu/ThreadTeam.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <immintrin.h>
#include <numeric>
#include <vector>

using namespace kiln::bench;

// Twelve accumulators hide a latency of four to five cycles at two multiply-adds a cycle, and fit AVX2's 16 registers.
// The factor is just under one and the addend small, so that values stay ordinary numbers.
static constexpr int chains = 12, unrolled = 16;

/// The sum of all lanes, so that nothing is computed in vain.
template <class Lane, class Vector> static float sumOf(const Vector (&sums)[chains]) {
  Lane lanes[chains * sizeof(Vector) / sizeof(Lane)];
  std::memcpy(lanes, sums, sizeof(sums));
  return static_cast<float>(std::accumulate(std::begin(lanes), std::end(lanes), Lane()));
}

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
  return sumOf<float>(sums);
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
  return sumOf<float>(sums);
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
  return sumOf<float>(sums);
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
  return sumOf<uint32_t>(sums); // which may wrap
}

// What AMX is told of its tiles: all are of 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Twelve products a round, each of four sums in turn. Operands are numbers between -1 and 1, or bytes, of all kinds:
// zeros would be faster.
#define KILN_TILE_PRODUCTS(multiply)                                                                                   \
  TileShapes shapes;                                                                                                   \
  uint16_t operands[4][16 * 32];                                                                                       \
  float sums[16 * 16];                                                                                                 \
  for (int i = 0; i < 4 * 16 * 32; ++i)                                                                                \
    operands[i / 512][i % 512] = static_cast<uint16_t>((i % 2) << 15 | (0x3f00 + i * 37 % 128));                       \
  __asm__ volatile("" : : "r"(&shapes), "r"(operands) : "memory"); /* the intrinsics do not say that they read */      \
  _tile_loadconfig(&shapes);                                                                                           \
  _tile_zero(0);                                                                                                       \
  _tile_zero(1);                                                                                                       \
  _tile_zero(2);                                                                                                       \
  _tile_zero(3);                                                                                                       \
  _tile_loadd(4, operands[0], 64);                                                                                     \
  _tile_loadd(5, operands[1], 64);                                                                                     \
  _tile_loadd(6, operands[2], 64);                                                                                     \
  _tile_loadd(7, operands[3], 64);                                                                                     \
  for (int64_t round = 0; round < rounds; ++round)                                                                     \
    for (int i = 0; i < 3; ++i) {                                                                                      \
      multiply(0, 4, 6);                                                                                               \
      multiply(1, 4, 7);                                                                                               \
      multiply(2, 5, 6);                                                                                               \
      multiply(3, 5, 7);                                                                                               \
    }                                                                                                                  \
  _tile_stored(0, sums, 64);                                                                                           \
  _tile_release();                                                                                                     \
  return static_cast<float>(std::isnan(sums[0]))

__attribute__((target("amx-tile,amx-bf16"))) static float bf16Tiles(int64_t rounds) {
  KILN_TILE_PRODUCTS(_tile_dpbf16ps);
}
__attribute__((target("amx-tile,amx-int8"))) static float i8Tiles(int64_t rounds) { KILN_TILE_PRODUCTS(_tile_dpbssd); }
#undef KILN_TILE_PRODUCTS

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
  if (kiln::lowering::cpu::hostCpu().tiles) {                      // which asks the system for them, too
    constexpr int share = 12 * 16 * 16 * 16 / (chains * unrolled); // words, of two products or four
    units.push_back({"bf16 tiles", bf16Tiles, 2 * share});
    units.push_back({"i8 tiles", i8Tiles, 4 * share});
  }
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

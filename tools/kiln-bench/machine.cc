// Implements machine.h. The f32 loops exist for AVX-512 and for AVX2 (Kiln's minimum), and are selected at run time.

#include "lowering/cpu/CpuTarget.h"
#include "runtime/cpu/ThreadTeam.h"
#include "tools/kiln-bench/bench.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <immintrin.h>
#include <numeric>
#include <vector>

using namespace kiln::bench;

// Twelve accumulators hide a latency of four to five cycles at two FMAs per cycle, and fit AVX2's 16 registers. The
// factor is slightly below one and the addend small, so that values stay normal numbers.
static constexpr int chains = 12, unrolled = 16;

/// The sum of all lanes, so that no computation can be removed.
template <class Lane, class Vector> static float sumOf(const Vector (&sums)[chains]) {
  Lane lanes[chains * sizeof(Vector) / sizeof(Lane)];
  std::memcpy(lanes, sums, sizeof(sums));
  return static_cast<float>(std::accumulate(std::begin(lanes), std::end(lanes), Lane()));
}

// One function per unit: its name, required features, lanes and vectors of its accumulators, the initial value of
// accumulator `i`, and the update of a `sum`.
#define KILN_RATE(name, features, Lane, Vector, first, next)                                                           \
  __attribute__((target(features))) static float name(int64_t rounds) {                                                \
    Vector sums[chains];                                                                                               \
    for (int i = 0; i < chains; ++i)                                                                                   \
      sums[i] = first;                                                                                                 \
    for (int64_t round = 0; round < rounds; ++round)                                                                   \
      _Pragma("GCC unroll 16") for (int u = 0; u < unrolled; ++u) _Pragma("GCC unroll 12") for (Vector &sum : sums)    \
          sum = next;                                                                                                  \
    return sumOf<Lane>(sums);                                                                                          \
  }
KILN_RATE(multiplyAdds512, "avx512f", float, __m512, _mm512_set1_ps(1.0f + 0.001f * static_cast<float>(i)),
          _mm512_fmadd_ps(sum, _mm512_set1_ps(0.999f), _mm512_set1_ps(1e-3f)))
KILN_RATE(multiplyAdds256, "avx2,fma", float, __m256, _mm256_set1_ps(1.0f + 0.001f * static_cast<float>(i)),
          _mm256_fmadd_ps(sum, _mm256_set1_ps(0.999f), _mm256_set1_ps(1e-3f)))
// Sums of narrow products grow slowly enough to stay finite, or wrap.
KILN_RATE(pairs512, "avx512f,avx512bf16", float, __m512, _mm512_setzero_ps(),
          _mm512_dpbf16_ps(sum, _mm512_cvtne2ps_pbh(_mm512_set1_ps(1), _mm512_set1_ps(1)),
                           _mm512_cvtne2ps_pbh(_mm512_set1_ps(1), _mm512_set1_ps(1))))
KILN_RATE(quads512, "avx512f,avx512vnni", uint32_t, __m512i, _mm512_setzero_si512(),
          _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), _mm512_set1_epi8(1)))
#undef KILN_RATE

// AMX's tile configuration: all tiles have 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Twelve products per iteration, on four accumulators in turn. Operands are random numbers between -1 and 1, or bytes;
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

// Four vectors at a time.
#define KILN_COPY(name, features, Vector, load, store)                                                                 \
  __attribute__((target(features))) static void name(float *to, const float *from, int64_t count) {                    \
    constexpr int64_t lanes = sizeof(Vector) / sizeof(float);                                                          \
    int64_t i = 0;                                                                                                     \
    for (; i + 4 * lanes <= count; i += 4 * lanes) {                                                                   \
      Vector parts[4];                                                                                                 \
      for (int part = 0; part < 4; ++part)                                                                             \
        parts[part] = load(from + i + part * lanes);                                                                   \
      for (int part = 0; part < 4; ++part)                                                                             \
        store(to + i + part * lanes, parts[part]);                                                                     \
    }                                                                                                                  \
    for (; i < count; ++i)                                                                                             \
      to[i] = from[i];                                                                                                 \
  }
KILN_COPY(copy512, "avx512f", __m512, _mm512_loadu_ps, _mm512_storeu_ps)
KILN_COPY(copy256, "avx2", __m256, _mm256_loadu_ps, _mm256_storeu_ps)
#undef KILN_COPY

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
  if (kiln::lowering::cpu::hostCpu().tiles) {                      // also requests them from the system
    constexpr int share = 12 * 16 * 16 * 16 / (chains * unrolled); // words, of two products or four
    units.push_back({"bf16 tiles", bf16Tiles, 2 * share});
    units.push_back({"i8 tiles", i8Tiles, 4 * share});
  }
  return units;
}

double kiln::bench::runPeak(const CoreUnit &unit, int threads, int64_t rounds) {
  std::vector<float> results(static_cast<size_t>(threads));
  onThreads(threads, [&](int t) { results[static_cast<size_t>(t)] = unit.run(rounds); });
  // The results are used, so that the loops are not removed.
  bool finite = std::all_of(results.begin(), results.end(), [](float r) { return std::isfinite(r); });
  return finite ? 2.0 * unit.products * chains * unrolled * static_cast<double>(rounds) * threads : 0;
}

void kiln::bench::copyFloats(float *to, const float *from, int64_t count, int threads) {
  onThreads(threads, [&](int t) {
    int64_t begin = count * t / threads, end = count * (t + 1) / threads;
    (isWide() ? copy512 : copy256)(to + begin, from + begin, end - begin);
  });
}

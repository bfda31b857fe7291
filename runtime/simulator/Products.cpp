// Fast products. A row of A and a column of B are the words of four adjacent lanes, so that 16 bytes are loaded at
// once. Eight rows of C stay in host registers during the loop over K.

#include "runtime/simulator/Fragments.h"

#include <immintrin.h>

namespace kiln::simulator {

using ptx::Type;

/// The words of four lanes as numbers: eight, or four of tf32 with an upper half of 0.
template <Type type> static __m256 numbersOf(const uint32_t *words) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i *>(words));
  if constexpr (type == Type::f16)
    return _mm256_cvtph_ps(bits);
  else if constexpr (type == Type::bf16)
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  else // the lowest 13 bits are ignored
    return _mm256_castps128_ps256(_mm_castsi128_ps(_mm_and_si128(bits, _mm_set1_epi32(~0x1fff))));
}

/// Transposes a matrix of 8 × 8 numbers.
static void transpose(__m256 (&rows)[8]) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

template <Type type, int K>
static void multiply(const uint32_t *const *a, const uint32_t *const *b, const uint32_t *const *c, uint32_t *const *d) {
  constexpr int perWord = type == Type::tf32 ? 1 : 2, columns = 4 * perWord; // columns of four lanes
  constexpr int parts = K / columns;
  alignas(32) float left[16][K < 8 ? 8 : K];
  __m256 right[K];
  for (int part = 0; part < parts; ++part) {
    for (int half = 0; half < 2; ++half)
      for (int g = 0; g < 8; ++g) {
        float *const to = left[g + 8 * half] + columns * part;
        const __m256 row = numbersOf<type>(a[2 * part + half] + 4 * g);
        if constexpr (perWord == 2)
          _mm256_storeu_ps(to, row);
        else
          _mm_storeu_ps(to, _mm256_castps256_ps128(row));
      }
    __m256 transposed[8];
    for (int g = 0; g < 8; ++g)
      transposed[g] = numbersOf<type>(b[part] + 4 * g);
    transpose(transposed);
    for (int k = 0; k < columns; ++k)
      right[columns * part + k] = transposed[k];
  }
  __m256 all[2][8]; // read before any write, because registers of D may be those of C
  for (int half = 0; half < 2; ++half)
    for (int g = 0; g < 8; ++g) { // columns 2 t and 2 t + 1 are in two registers
      const __m128 even = _mm_loadu_ps(reinterpret_cast<const float *>(c[2 * half] + 4 * g));
      const __m128 odd = _mm_loadu_ps(reinterpret_cast<const float *>(c[2 * half + 1] + 4 * g));
      all[half][g] = _mm256_set_m128(_mm_unpackhi_ps(even, odd), _mm_unpacklo_ps(even, odd));
    }
  for (int half = 0; half < 2; ++half) {
    __m256(&sums)[8] = all[half];
    for (int k = 0; k < K; ++k)
      for (int g = 0; g < 8; ++g)
        sums[g] = _mm256_fmadd_ps(_mm256_broadcast_ss(&left[8 * half + g][k]), right[k], sums[g]);
    for (int g = 0; g < 8; ++g) {
      const __m128 low = _mm256_castps256_ps128(sums[g]), high = _mm256_extractf128_ps(sums[g], 1);
      _mm_storeu_ps(reinterpret_cast<float *>(d[2 * half] + 4 * g), _mm_shuffle_ps(low, high, 0x88));
      _mm_storeu_ps(reinterpret_cast<float *>(d[2 * half + 1] + 4 * g), _mm_shuffle_ps(low, high, 0xdd));
    }
  }
}

void multiplyFragments(Type type, int K, const uint32_t *const *a, const uint32_t *const *b, const uint32_t *const *c,
                       uint32_t *const *d) {
  if (type == Type::f16)
    K == 8 ? multiply<Type::f16, 8>(a, b, c, d) : multiply<Type::f16, 16>(a, b, c, d);
  else if (type == Type::bf16)
    K == 8 ? multiply<Type::bf16, 8>(a, b, c, d) : multiply<Type::bf16, 16>(a, b, c, d);
  else
    K == 4 ? multiply<Type::tf32, 4>(a, b, c, d) : multiply<Type::tf32, 8>(a, b, c, d);
}

void turn16(const char *const rows[8], char *columns) {
  __m128i in[8], pairs[8], fours[8];
  for (int i = 0; i < 8; ++i)
    in[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(rows[i]));
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm_unpacklo_epi16(in[2 * i], in[2 * i + 1]);     // columns 0 … 3 of two rows
    pairs[i + 4] = _mm_unpackhi_epi16(in[2 * i], in[2 * i + 1]); // columns 4 … 7
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + j] = _mm_unpacklo_epi32(pairs[i + 2 * j], pairs[i + 2 * j + 1]);     // columns i, i + 1 of four rows
      fours[i + j + 2] = _mm_unpackhi_epi32(pairs[i + 2 * j], pairs[i + 2 * j + 1]); // columns i + 2, i + 3
    }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      auto *const to = reinterpret_cast<__m128i *>(columns) + i + 2 * j;
      _mm_storeu_si128(to, _mm_unpacklo_epi64(fours[i + 2 * j], fours[i + 2 * j + 1]));
      _mm_storeu_si128(to + 1, _mm_unpackhi_epi64(fours[i + 2 * j], fours[i + 2 * j + 1]));
    }
}

} // namespace kiln::simulator

// Moves of 8×8 matrices between shared memory and registers, their transposition, common parts of all matrix
// instructions, and fast products.

#include "runtime/simulator/Access.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Fragments.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <immintrin.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

void expectWholeWarp(Warp &warp, const Step &step) {
  if (warp.exec != allLanes)
    warp.report(Check::barrier, step, std::countr_zero(~warp.exec),
                fmt::format("only lanes {:#x} execute an instruction that takes the whole warp", warp.exec));
}

// --- Fragments -----------------------------------------------------------------------------------------------------

void addFragment(Decoder &d, const Operand &operand, size_t count, Type type, bool isResult,
                 std::vector<uint32_t> &slots) {
  const auto elements = d.elements(operand);
  if (operand.kind != Operand::Kind::vector || elements.size() != count)
    d.wrong(fmt::format("a fragment of {} registers, but got {},", count, elements.size()));
  for (const Operand &element : elements)
    slots.push_back(isResult ? d.result(element, type) : d.source(element, type));
}

std::array<int, 3> takeShape(Decoder &d) {
  for (const std::string_view modifier : d.rest()) {
    if (!modifier.starts_with('m') || modifier.size() < 6 || modifier[1] < '0' || modifier[1] > '9')
      continue;
    std::array<int, 3> shape{};
    const char *at = modifier.data();
    const char *const end = at + modifier.size();
    for (size_t i = 0; i < 3; ++i) {
      if (at == end || *at != "mnk"[i])
        d.wrong("a shape");
      const auto [stop, failure] = std::from_chars(at + 1, end, shape[i]);
      if (failure != std::errc() || shape[i] < 1 || shape[i] > 256)
        d.wrong("extents of a matrix from 1 to 256");
      at = stop;
    }
    if (at != end)
      d.wrong("a shape");
    d.take(modifier);
    return shape;
  }
  d.wrong("a shape");
}

// --- ldmatrix, stmatrix --------------------------------------------------------------------------------------------

namespace {
/// The data of a matrix store.
struct StoredMatrices {
  Warp &warp;
  const uint32_t *slots;
  bool transposed;
};
} // namespace

/// Byte `byte` of the row at lane `lane`'s address.
static uint8_t storedMatrixByte(const void *context, int lane, uint32_t byte) {
  const auto &[warp, slots, transposed] = *static_cast<const StoredMatrices *>(context);
  const auto row = static_cast<uint32_t>(lane % 8), column = byte / 2;
  const uint32_t major = transposed ? column : row, minor = transposed ? row : column;
  const uint32_t word = warp.reg<uint32_t>(slots[lane / 8])[4 * major + minor / 2];
  return static_cast<uint8_t>(word >> (16 * (minor % 2) + 8 * (byte % 2)));
}

/// Moves rows of 8 halves. Lanes 8 i … 8 i + 7 have the addresses of matrix i's rows. Lane l holds two elements, from
/// 2 (l % 4) on, of row l / 4, or with `.trans` of column l / 4.
template <bool IsStore> static void moveMatrices(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const AccessShape shape = AccessShape::unpack(step.target);
  const uint32_t *slots = warp.list(step);
  const bool transposed = shape.isSigned; // the field is free here
  const int lanes = static_cast<int>(step.count) * 8;
  const Mask executing = warp.exec;
  warp.exec &= lanes == lanesOfWarp ? allLanes : (Mask{1} << lanes) - 1; // addresses of other lanes are ignored
  const StoredMatrices matrices{warp, slots, transposed};
  const StoredBytes stored{&matrices, storedMatrixByte};
  const LanePointers rows =
      resolve(warp, step, shape.space, addressesOf(warp, step, shape), 16,
              IsStore ? AccessKind::warpWrite : AccessKind::warpRead, nullptr, IsStore ? &stored : nullptr);
  warp.exec = executing;
  for (uint32_t matrix = 0; matrix < step.count; ++matrix) {
    auto *words = warp.reg<uint32_t>(slots[matrix]);
    if (!IsStore && (rows.valid >> (8 * matrix) & 0xff) == 0xff) { // the words of four lanes are a row
      const auto *const first = rows.at.data() + size_t{8} * matrix;
      if (transposed)
        turn16(first, reinterpret_cast<char *>(words));
      else
        for (size_t row = 0; row < 8; ++row)
          std::memcpy(words + 4 * row, first[row], 16);
      continue;
    }
    uint16_t elements[8][8] = {};
    if constexpr (!IsStore)
      for (size_t row = 0; row < 8; ++row)
        if (rows.valid >> (8 * matrix + row) & 1)
          std::memcpy(elements[row], rows.at[8 * matrix + row], 16);
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      const int major = lane / 4, minor = 2 * (lane % 4);
      uint16_t &low = transposed ? elements[minor][major] : elements[major][minor];
      uint16_t &high = transposed ? elements[minor + 1][major] : elements[major][minor + 1];
      if constexpr (IsStore)
        low = static_cast<uint16_t>(words[lane]), high = static_cast<uint16_t>(words[lane] >> 16);
      else
        words[lane] = low | static_cast<uint32_t>(high) << 16;
    }
    if constexpr (IsStore)
      for (size_t row = 0; row < 8; ++row)
        if (rows.valid >> (8 * matrix + row) & 1)
          std::memcpy(rows.at[8 * matrix + row], elements[row], 16);
  }
}

template <bool IsStore> static void decodeMatrixMove(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    d.unsupported();
  const int number = d.takeOne({"x1", "x2", "x4"});
  const bool transposed = d.take("trans");
  const Space space = d.space();
  if (number < 0 || d.type() != Type::b16)
    d.unsupported();
  d.expectCount(2, 2);
  std::vector<uint32_t> slots;
  addFragment(d, d.operand(IsStore ? 1 : 0), size_t{1} << number, Type::b32, !IsStore, slots);
  AccessShape shape;
  shape.bytes = 16;
  shape.isSigned = transposed;
  const Decoder::Address address = d.address(d.operand(IsStore ? 0 : 1), space);
  Step &step = d.emit(moveMatrices<IsStore>);
  setAddress(step, shape, address);
  d.giveList(step, slots);
}

/// movmatrix: transposes an 8×8 matrix in registers.
static void decodeMovmatrix(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8") || !d.take("trans") || d.type() != Type::b16)
    d.unsupported();
  d.expectCount(2, 2);
  d.emit(
      [](Warp &warp, const Step &step) {
        expectWholeWarp(warp, step);
        uint16_t elements[8][8];
        const auto *source = warp.reg<uint32_t>(step.slots[1]);
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          for (int half = 0; half < 2; ++half)
            elements[lane / 4][2 * (lane % 4) + half] = static_cast<uint16_t>(source[lane] >> (16 * half));
        auto *result = warp.reg<uint32_t>(step.slots[0]);
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          result[lane] =
              elements[2 * (lane % 4)][lane / 4] | static_cast<uint32_t>(elements[2 * (lane % 4) + 1][lane / 4]) << 16;
      },
      {d.result(0, Type::b32), d.source(1, Type::b32)});
}

void addMatrix(InstructionTable &table) {
  table["ldmatrix"] = decodeMatrixMove<false>;
  table["stmatrix"] = decodeMatrixMove<true>;
  table["movmatrix"] = decodeMovmatrix;
}

// --- Products in host registers -------------------------------------------------------------------------------------
//
// Fast products. A row of A and a column of B are the words of four adjacent lanes, so that 16 bytes are loaded at
// once. Eight rows of C stay in host registers during the loop over K.

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

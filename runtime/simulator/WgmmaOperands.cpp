// Descriptors, and elements of 16-byte chunks and fragments.

#include "runtime/simulator/WgmmaOperands.h"

#include "runtime/simulator/Numbers.h"

#include <array>
#include <cstring>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Type;

// --- Descriptors ---------------------------------------------------------------------------------------------------

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start(static_cast<uint32_t>(bits & 0x3fff) << 4), leading(static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4),
      stride(static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4), baseOffset(static_cast<uint32_t>(bits >> 49 & 7)) {
  static constexpr Swizzle modes[] = {Swizzle::none, Swizzle::bytes128, Swizzle::bytes64, Swizzle::bytes32};
  swizzle = modes[bits >> 62];
}

std::string MatrixDescriptor::fault() const {
  if (baseOffset != 0)
    return fmt::format("a base offset in a matrix descriptor is not supported by the simulator, but got {}",
                       baseOffset);
  if (swizzle == Swizzle::none)
    return {};
  // The 8 rows of a swizzle pattern begin where bits 7 to 9 of the address, as far as the swizzle uses them, are 0.
  const uint32_t pattern = 8 * bytesOf(swizzle), row = start & (pattern - 128);
  if (row != 0)
    return fmt::format(
        "expected a matrix of a {}-byte swizzle in the first row of its pattern of {} bytes, but got one at "
        "{}",
        bytesOf(swizzle), pattern, start);
  return {};
}

// --- Elements ------------------------------------------------------------------------------------------------------

static const std::array<float, 256> &eighths(bool isE5m2) {
  static const std::array<std::array<float, 256>, 2> tables = [] {
    std::array<std::array<float, 256>, 2> made;
    for (size_t type = 0; type < 2; ++type)
      for (size_t bits = 0; bits < 256; ++bits)
        made[type][bits] = static_cast<float>(fromEighth(type == 1, static_cast<uint8_t>(bits)));
    return made;
  }();
  return tables[isE5m2];
}

/// The elements of 16 bytes.
template <class T> static void convertChunk(Type type, const char *chunk, bool negated, T *elements) {
  const auto bytes = reinterpret_cast<const uint8_t *>(chunk);
  if constexpr (std::is_same_v<T, int32_t>) {
    for (int i = 0; i < 16; ++i)
      elements[i] = type == Type::s8 ? static_cast<int8_t>(bytes[i]) : bytes[i];
  } else {
    switch (type) {
    case Type::f16:
      _mm256_storeu_ps(elements, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(chunk))));
      break;
    case Type::bf16:
      _mm256_storeu_ps(elements,
                       _mm256_castsi256_ps(_mm256_slli_epi32(
                           _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(chunk))), 16)));
      break;
    case Type::e4m3:
    case Type::e5m2: {
      const std::array<float, 256> &table = eighths(type == Type::e5m2);
      for (int i = 0; i < 16; ++i)
        elements[i] = table[bytes[i]];
      break;
    }
    default: // tf32: the lowest 13 bits are ignored
      for (int i = 0; i < 4; ++i) {
        uint32_t word;
        std::memcpy(&word, chunk + 4 * i, 4);
        elements[i] = std::bit_cast<float>(word & 0xffffe000);
      }
    }
    if (negated)
      for (int i = 0; i < 128 / ptx::bitsOf(type); ++i)
        elements[i] = -elements[i];
  }
}

/// Calls `put(row, k, element)` for every element of the part.
template <class T, class Put>
static bool forEachElement(const SharedBytes &shared, const MatrixDescriptor &matrix, const MatrixPart &part, Put put) {
  bool inside = true;
  const int perChunk = 128 / ptx::bitsOf(part.type);
  forEachChunk(matrix, part, [&](int row, int k, uint32_t place) {
    static constexpr char zeros[16] = {};
    const bool isThere = place + 16 <= shared.size;
    inside &= isThere;
    T elements[16];
    convertChunk(part.type, isThere ? shared.data + place : zeros, part.negated, elements);
    if (part.transposed)
      for (int i = 0; i < perChunk; ++i)
        put(row + i, k, elements[i]);
    else
      for (int i = 0; i < perChunk; ++i)
        put(row, k + i, elements[i]);
  });
  return inside;
}

template <class T> static void putRow(RowOperand<T> &rows, int row, int k, T element) {
  _mm_store_si128(reinterpret_cast<__m128i *>(&rows.values[row / 8][k][4 * (row % 8)]),
                  _mm_set1_epi32(std::bit_cast<int32_t>(element)));
}

template <class T>
bool readRows(const SharedBytes &shared, const MatrixDescriptor &matrix, const MatrixPart &part, RowOperand<T> &rows) {
  return forEachElement<T>(shared, matrix, part, [&](int row, int k, T element) { putRow(rows, row, k, element); });
}

template <class T>
bool readColumns(const SharedBytes &shared, const MatrixDescriptor &matrix, const MatrixPart &part,
                 ColumnOperand<T> &columns) {
  columns.resize(static_cast<size_t>(part.rows) * static_cast<size_t>(part.K));
  const auto K = static_cast<size_t>(part.K);
  return forEachElement<T>(shared, matrix, part, [&](int column, int k, T element) {
    const auto n = static_cast<size_t>(column);
    columns[((n / 8 * 2 + n % 2) * K + static_cast<size_t>(k)) * 4 + n / 2 % 4] = element;
  });
}

template <class T> void readFragment(const uint32_t *const (&words)[4], const MatrixPart &part, RowOperand<T> &rows) {
  const int perWord = 32 / ptx::bitsOf(part.type);
  for (int r = 0; r < 4; ++r)
    for (int quad = 0; quad < 8; ++quad) { // four lanes: 16 bytes of a row
      T elements[16];
      convertChunk(part.type, reinterpret_cast<const char *>(words[r] + 4 * quad), part.negated, elements);
      for (int i = 0; i < 4 * perWord; ++i)
        putRow(rows, quad + 8 * (r & 1), 4 * perWord * (r >> 1) + i, elements[i]);
    }
}

template bool readRows(const SharedBytes &, const MatrixDescriptor &, const MatrixPart &, RowOperand<float> &);
template bool readRows(const SharedBytes &, const MatrixDescriptor &, const MatrixPart &, RowOperand<int32_t> &);
template bool readColumns(const SharedBytes &, const MatrixDescriptor &, const MatrixPart &, ColumnOperand<float> &);
template bool readColumns(const SharedBytes &, const MatrixDescriptor &, const MatrixPart &, ColumnOperand<int32_t> &);
template void readFragment(const uint32_t *const (&)[4], const MatrixPart &, RowOperand<float> &);
template void readFragment(const uint32_t *const (&)[4], const MatrixPart &, RowOperand<int32_t> &);

} // namespace kiln::simulator

// The operands of wgmma: matrices in shared memory with a 64-bit descriptor, and register fragments.
//
// Elements become float, or int32_t for integer types, in the order in which the arithmetic reads them.

#pragma once

#include "runtime/simulator/TensorMap.h"
#include "runtime/simulator/ptx/Module.h"

#include <string>
#include <vector>

namespace kiln::simulator {

/// A matrix descriptor: the begin of the matrix, and the distances in bytes between its 8×16-byte core matrices.
struct MatrixDescriptor {
  uint32_t start = 0, leading = 0, stride = 0, baseOffset = 0;
  Swizzle swizzle = Swizzle::none;

  explicit MatrixDescriptor(uint64_t bits);
  /// The error in the descriptor, or the part that the simulator does not support; empty if it is good.
  std::string fault() const;
};

/// A part of a matrix: `rows` of M or N from `first`, and K columns. `transposed`: M or N is the fastest dimension.
struct MatrixPart {
  ptx::Type type = ptx::Type::f16;
  int first = 0, rows = 0, K = 0;
  bool transposed = false, negated = false;
};

/// The shared memory that wgmma reads.
struct SharedBytes {
  const char *data = nullptr;
  uint32_t size = 0;
};

/// Calls `visit(row, column, place)` for each 16 bytes of the part, with the place of its first element.
template <class Visit> void forEachChunk(const MatrixDescriptor &matrix, const MatrixPart &part, Visit visit) {
  const int perChunk = 128 / ptx::bitsOf(part.type), bytes = 16 / perChunk;
  const auto width = static_cast<int>(bytesOf(matrix.swizzle)); // of a swizzled row
  const auto at = [&](int64_t place) { return swizzled(static_cast<uint32_t>(place), matrix.swizzle); };
  const int64_t start = matrix.start, leading = matrix.leading, stride = matrix.stride;
  if (!part.transposed) {
    for (int row = part.first; row < part.first + part.rows; ++row)
      for (int k = 0; k < part.K; k += perChunk) {
        const int64_t core = start + int64_t{row / 8} * stride;
        visit(row - part.first, k,
              width ? at(core + int64_t{row % 8} * width + int64_t{k} * bytes)
                    : at(core + int64_t{row % 8} * 16 + k / perChunk * leading));
      }
    return;
  }
  const int perRow = width ? width / bytes : perChunk;
  for (int row = part.first; row < part.first + part.rows; row += perChunk)
    for (int k = 0; k < part.K; ++k)
      visit(row - part.first, k,
            width ? at(start + int64_t{row % perRow} * bytes + row / perRow * leading + int64_t{k % 8} * width +
                       k / 8 * stride)
                  : at(start + row / 8 * stride + int64_t{k % 8} * 16 + k / 8 * leading));
}

/// A for one warp: element (row, k) for each lane and each half of the 16 rows, as [half][k][lane].
template <class T> struct RowOperand {
  static constexpr int maxK = 32;
  alignas(32) T values[2][maxK][32];
};
/// B for all warps: element (k, column) as [column / 8][column % 2][k][column / 2 % 4]: the lanes of one column pair.
template <class T> using ColumnOperand = std::vector<T>;

/// Reads the part from shared memory. Bytes out of bounds read as 0; then the result is false.
template <class T>
bool readRows(const SharedBytes &shared, const MatrixDescriptor &matrix, const MatrixPart &part, RowOperand<T> &rows);
template <class T>
bool readColumns(const SharedBytes &shared, const MatrixDescriptor &matrix, const MatrixPart &part,
                 ColumnOperand<T> &columns);
/// Reads A from the four words of each lane.
template <class T> void readFragment(const uint32_t *const (&words)[4], const MatrixPart &part, RowOperand<T> &rows);

} // namespace kiln::simulator

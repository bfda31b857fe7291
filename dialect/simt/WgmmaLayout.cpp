// Derives distances between atoms from a shared-memory layout, and checks all elements against them.

#include "dialect/simt/WgmmaLayout.h"

#include "dialect/simt/layout/SwizzledLayout.h"

using namespace mlir;

namespace kiln::simt {

static constexpr int64_t kOfProduct = 16, rowsOfAtom = 8, elementBytes = 2;

/// The byte offset of the element at a position.
static int64_t byteOf(SharedLayoutAttr sharedLayout, const F2Map &map, const TileShape &shape,
                      ArrayRef<int64_t> position) {
  Vec core = 0;
  int64_t repeat = 0;
  for (unsigned dim = 0; dim < shape.rank(); ++dim) {
    core |= shape.vectorAt(dim, position[dim] % shape[dim].core());
    repeat = repeat * shape[dim].repeats + position[dim] / shape[dim].core();
  }
  return repeat * sharedLayout.getCoreBytes() + static_cast<int64_t>(map(core)) * sharedLayout.getBits() / 8;
}

/// A byte's offset before the swizzle, which is an involution.
static int64_t unswizzled(int64_t byte, unsigned width) {
  const int64_t pieces = width / 16 - 1;
  return byte ^ (byte >> 7 & pieces) << 4;
}

int64_t WgmmaLayout::at(int64_t row, int64_t k) const {
  int64_t position[2];
  position[outer] = row;
  position[1 - outer] = k;
  return unswizzled(byteOf(sharedLayout, sharedLayout.getMap(), TileShape(sharedLayout.getShape()), position), width);
}

uint64_t WgmmaLayout::descriptor() const {
  const uint64_t kind = width == 128 ? 1 : width == 64 ? 2 : 3;
  return static_cast<uint64_t>(leading / 16) << 16 | static_cast<uint64_t>(stride / 16) << 32 | kind << 62;
}

/// Whether the elements of each product are at the offsets given by its begin and the distances.
static bool isRegular(const WgmmaLayout &matrix, int64_t rows) {
  const TileShape shape(matrix.sharedLayout.getShape());
  const F2Map map = matrix.sharedLayout.getMap();
  const int64_t perRow = matrix.width / elementBytes;
  const auto within = [&](int64_t row, int64_t k) {
    return matrix.isTransposed ? row % perRow * elementBytes + row / perRow * matrix.leading +
                                     k % rowsOfAtom * matrix.width + k / rowsOfAtom * matrix.stride
                               : row % rowsOfAtom * matrix.width + row / rowsOfAtom * matrix.stride + k * elementBytes;
  };
  int64_t position[2];
  int64_t &row = position[matrix.outer], &k = position[1 - matrix.outer];
  for (int64_t firstRow = 0; firstRow < shape[matrix.outer].size; firstRow += rows)
    for (int64_t firstK = 0; firstK < shape[1 - matrix.outer].size; firstK += kOfProduct) {
      const int64_t begin = matrix.at(firstRow, firstK);
      if (begin % 16 != 0)
        return false;
      for (row = firstRow; row < firstRow + rows; ++row)
        for (k = firstK; k < firstK + kOfProduct; ++k)
          if (unswizzled(byteOf(matrix.sharedLayout, map, shape, position), matrix.width) !=
              begin + within(row - firstRow, k - firstK))
            return false;
    }
  return true;
}

std::optional<WgmmaLayout> matrixIn(SharedLayoutAttr sharedLayout, unsigned outer, int64_t rows) {
  const TileShape shape(sharedLayout.getShape());
  if (shape.rank() != 2 || sharedLayout.getBits() != 8 * elementBytes || shape[outer].size % rows != 0 ||
      shape[1 - outer].size % kOfProduct != 0 || shape[0].isPadded() || shape[1].isPadded() || rows % rowsOfAtom != 0)
    return std::nullopt;
  WgmmaLayout matrix{.sharedLayout = sharedLayout, .outer = outer};
  const F2Map map = sharedLayout.getMap();
  const auto isInner = [&](unsigned dim) { return map(shape.vectorAt(dim, 1)) == 1; };
  matrix.isTransposed = isInner(outer);
  if (!matrix.isTransposed && !isInner(1 - outer))
    return std::nullopt;
  const Extent &columns = shape[matrix.isTransposed ? outer : 1 - outer];
  matrix.width = static_cast<unsigned>(std::min<int64_t>(128, columns.core() * elementBytes));
  if (matrix.width < 32)
    return std::nullopt;
  const int64_t perRow = matrix.width / elementBytes;
  if (matrix.isTransposed) {
    matrix.stride = matrix.at(0, rowsOfAtom);
    if (perRow < rows)
      matrix.leading = matrix.at(perRow, 0);
  } else if (rowsOfAtom < rows) {
    matrix.stride = matrix.at(rowsOfAtom, 0);
  }
  constexpr int64_t maxDistance = int64_t{1} << 18;
  for (const int64_t distance : {matrix.leading, matrix.stride})
    if (distance < 0 || distance % 16 != 0 || distance >= maxDistance)
      return std::nullopt;
  return isRegular(matrix, rows) ? std::optional(matrix) : std::nullopt;
}

} // namespace kiln::simt

// Triangular masks: the part of a tile that is known to be zero, and the part that is not used. They save half of the
// work of causal attention in blocks on the diagonal.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering {

/// The elements of a tile of rank 2 with column − row ≤ shift; with `transposed`, those with row − column ≤ shift.
struct Triangle {
  mlir::Value limit; // i32 or i64, one value for the whole tile
  int64_t offset;    // shift = limit + offset
  bool transposed;

  bool operator==(const Triangle &) const = default;
};

/// The triangle in which `mask`, a tile of i1, is true, and outside of which it is false. Nothing unless `mask` is a
/// comparison of this form.
std::optional<Triangle> comparisonOf(mlir::Value mask);

/// A triangle outside of which every element of `tile` is zero, if one is known.
std::optional<Triangle> zeroOutside(mlir::Value tile);

/// A triangle outside of which no element of `tile` affects a result, if one is known.
std::optional<Triangle> readInside(mlir::Value tile);

} // namespace kiln::lowering

// Triangular masks: which part of a tile is known to be zero, and which part nobody looks at. Causal attention leaves
// out half of the work on the diagonal by them.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering {

/// The elements of a tile of rank 2 with column − row ≤ shift; with `transposed`, those with row − column ≤ shift.
struct Triangle {
  mlir::Value limit; // i32 or i64, the same for the whole tile
  int64_t offset;    // shift = limit + offset
  bool transposed;

  bool operator==(const Triangle &) const = default;
};

/// The triangle in which alone `mask`, a tile of i1, is true, if `mask` is nothing but the comparison that says so.
std::optional<Triangle> comparisonOf(mlir::Value mask);

/// The triangle outside which every element of `tile` is zero, if there is one.
std::optional<Triangle> zeroOutside(mlir::Value tile);

/// The triangle outside which no element of `tile` has an influence on anything, if there is one.
std::optional<Triangle> readInside(mlir::Value tile);

} // namespace kiln::lowering

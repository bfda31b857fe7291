// The elements for which a mask is true: equal in aligned runs, in one interval along a row, or in a triangle.

#pragma once

#include "dialect/tile/TileDialect.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Value.h"

#include <cstdint>

namespace kiln::lowering {

// --- Runs of equal elements ------------------------------------------------------------------------------------------

/// The length n, a power of two, of aligned runs of equal elements: along `dim`, the n elements from each multiple of n
/// on are equal. The tile has rank 1 or more. The result may be smaller than the largest possible n; 1 is always
/// correct.
int64_t constantAlong(mlir::Value tile, int64_t dim);

// --- Intervals -------------------------------------------------------------------------------------------------------

// Masks such as `begin + iota(N) < count`: along a row they are true in one interval of positions. So a vector's first
// and last lane decide whether the mask is true for all of it.

/// A tile whose elements increase, or decrease, along a mask's axis unless they wrap. They wrap at most once in a row;
/// the last element is then below the first, or above it if they decrease.
struct MayWrap {
  mlir::Value tile;
  mlir::AffineMap places; // from positions in the mask to positions in the tile
  bool falls = false;
};

/// Whether `mask`, a tile of i1, is true in one interval along `axis`, provided that none of the tiles appended to
/// `unless` wraps. Follows at most `effort` operations.
bool holdsInInterval(mlir::Value mask, int64_t axis, llvm::SmallVectorImpl<MayWrap> &unless, int effort = 8);

// --- Triangles -------------------------------------------------------------------------------------------------------

// Triangular masks: the part of a tile that is known to be zero, and the part that is not used. They save half of the
// work of causal attention in blocks on the diagonal.

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

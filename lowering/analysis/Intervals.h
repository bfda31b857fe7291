// Masks such as `begin + iota(N) < count`: along a row they are true in one interval of positions. So a vector's first
// and last lane decide whether the mask is true for all of it.

#pragma once

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Value.h"

namespace kiln::lowering {

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

} // namespace kiln::lowering

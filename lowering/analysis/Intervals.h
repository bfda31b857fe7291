// Masks such as `begin + iota(N) < count`: along a row they hold for one interval of positions, so that its ends tell
// of all.

#pragma once

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Value.h"

namespace kiln::lowering {

/// A tile whose elements go up along a mask's axis, or down, unless they wrap: it wraps once at most, and the last one
/// of a row is then below the first, or above it.
struct MayWrap {
  mlir::Value tile;
  mlir::AffineMap places; // of its elements, from those of the mask
  bool falls = false;
};

/// Whether any elements of `mask`, a tile of i1, that hold along `axis` have none between them that does not, where no
/// tile wraps that is put into `unless`. Looks through `effort` operations.
bool holdsInInterval(mlir::Value mask, int64_t axis, llvm::SmallVectorImpl<MayWrap> &unless, int effort = 8);

} // namespace kiln::lowering

// Runs of equal elements along a dimension of a tile. A vector access whose mask is constant over it needs one
// predicate.

#pragma once

#include "mlir/IR/Value.h"

#include <cstdint>

namespace kiln::lowering {

/// The length n, a power of two, of aligned runs of equal elements: along `dim`, the n elements from each multiple of n
/// on are equal. The tile has rank 1 or more. The result may be smaller than the largest possible n; 1 is always
/// correct.
int64_t constantAlong(mlir::Value tile, int64_t dim);

} // namespace kiln::lowering

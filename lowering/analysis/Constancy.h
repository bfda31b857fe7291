// Along which stretches of a dimension a tile has one value: what a packet of memory may be masked by.

#pragma once

#include "mlir/IR/Value.h"

#include <cstdint>

namespace kiln::lowering {

/// A power of two: the tile, of rank 1 or more, has one value wherever so many positions along `dim`, from a multiple
/// of it on, differ in that dimension alone. 1 is always right.
int64_t constantAlong(mlir::Value tile, int64_t dim);

} // namespace kiln::lowering

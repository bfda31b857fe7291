// Masks such as `begin + iota(N) < count`: along a row they hold for one interval of positions, so that its ends tell
// of all.

#pragma once

#include "mlir/IR/Value.h"

namespace kiln::lowering {

/// Whether any elements of `mask`, a tile of i1, that hold along `axis` have none between them that does not. Looks
/// through `effort` operations.
bool holdsInInterval(mlir::Value mask, int64_t axis, int effort = 8);

} // namespace kiln::lowering

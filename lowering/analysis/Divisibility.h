// Powers of two that divide a scalar. They determine the vector width of a load at an offset.

#pragma once

#include "mlir/IR/Value.h"

namespace kiln::lowering {

/// The largest power of two, up to 2³⁰, that is known to divide every value of an integer; 2³⁰ for 0. Follows at most
/// `effort` operations.
int64_t divisorOf(mlir::Value value, int effort = 8);

} // namespace kiln::lowering

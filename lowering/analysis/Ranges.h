// What is known of integer scalars: enough to see that bounds and offsets made of extents, program numbers and
// constants do not overflow.

#pragma once

#include "mlir/IR/Value.h"
#include "llvm/IR/ConstantRange.h"

namespace kiln::lowering {

/// A range that holds every value of `value`, an integer or index scalar, by its type's width (64 for an index). Looks
/// through `effort` operations.
llvm::ConstantRange rangeOf(mlir::Value value, int effort = 8);

} // namespace kiln::lowering

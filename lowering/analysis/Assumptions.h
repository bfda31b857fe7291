// The facts about integer scalars that the `tile.assume` operations of a kernel state.

#pragma once

#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace kiln::lowering {

/// The number of low bits of an integer scalar that are 0 by assumption, such as 4 for `n % 16 == 0`. Only assumptions
/// in the block that computes the scalar count: they hold wherever it is used.
unsigned assumedZeroBits(mlir::Value value);

/// The part of `known`, a range of an integer scalar, in which assumptions place it, such as `n > 0`. It is `known` if
/// they contradict it.
mlir::ConstantIntRanges assumedRange(mlir::Value value, const mlir::ConstantIntRanges &known);

} // namespace kiln::lowering

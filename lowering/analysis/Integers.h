// Facts about integers, from their defining operations and from the `tile.assume` operations of a kernel: ranges, and
// powers of two that divide them. Ranges prove that bounds and offsets computed from extents, program numbers and
// constants do not overflow. Divisors determine the vector width of a load at an offset.

#pragma once

#include "mlir/IR/Value.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace kiln::lowering {

/// The number of low bits of an integer scalar that are 0 by assumption, such as 4 for `n % 16 == 0`. Only assumptions
/// in the block that computes the scalar count: they hold wherever it is used.
unsigned assumedZeroBits(mlir::Value value);

/// The part of `known`, a range of an integer scalar, in which assumptions place it, such as `n > 0`. It is `known` if
/// they contradict it.
mlir::ConstantIntRanges assumedRange(mlir::Value value, const mlir::ConstantIntRanges &known);

/// A range that contains every value of `value`, by MLIR's interface for ranges of operations. `value` is an integer or
/// index scalar, or a tile of integers. Follows at most `effort` operations.
mlir::ConstantIntRanges rangeOf(mlir::Value value, int effort = 8);

/// Whether no value is negative.
inline bool isNonNegative(const mlir::ConstantIntRanges &range) { return range.smin().isNonNegative(); }

/// The largest power of two, up to 2³⁰, that is known to divide every value of an integer; 2³⁰ for 0. Follows at most
/// `effort` operations.
int64_t divisorOf(mlir::Value value, int effort = 8);

} // namespace kiln::lowering

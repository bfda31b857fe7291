// Ranges of integers, to prove that bounds and offsets computed from extents, program numbers and constants do not
// overflow.

#pragma once

#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace kiln::lowering {

/// A range that contains every value of `value`, an integer or index scalar, or every element of a tile of integers, by
/// MLIR's interface for ranges of operations. Follows at most `effort` operations.
mlir::ConstantIntRanges rangeOf(mlir::Value value, int effort = 8);

/// Whether no value is negative.
inline bool isNonNegative(const mlir::ConstantIntRanges &range) { return range.smin().isNonNegative(); }

} // namespace kiln::lowering

// What is known of integers: enough to see that bounds and offsets made of extents, program numbers and
// constants do not overflow.

#pragma once

#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace kiln::lowering {

/// A range that holds every value of `value`, an integer or index scalar, or every element of a tile of integers, as
/// operations' own interface for ranges says.
/// Looks through `effort` operations.
mlir::ConstantIntRanges rangeOf(mlir::Value value, int effort = 8);

/// Whether no value is negative.
inline bool isNonNegative(const mlir::ConstantIntRanges &range) { return range.smin().isNonNegative(); }

} // namespace kiln::lowering

// Conversions of unsigned integers.

#pragma once

#include "lowering/tile/Emit.h"

namespace kiln::lowering {

/// `value` converted to `element` with the semantics of a `tile.cast` with `tile.unsigned`: the integer operand, or the
/// integer result of a float, is unsigned.
mlir::Value castUnsigned(Emit &emit, mlir::Value value, mlir::Type element);

} // namespace kiln::lowering

// Conversions of integers without a sign.

#pragma once

#include "lowering/tile/Emit.h"

namespace kiln::lowering {

/// `value` converted to `element` as a `tile.cast` means it that is `tile.unsigned`: the integer that it is, or else
/// that a float becomes, has no sign.
mlir::Value castUnsigned(Emit &emit, mlir::Value value, mlir::Type element);

} // namespace kiln::lowering

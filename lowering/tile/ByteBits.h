// Conversion of 8-bit floats by integer arithmetic on their bits.

#pragma once

#include "lowering/tile/Emit.h"

namespace kiln::lowering {

/// Converts bytes, which are 8-bit floats of type `element`, to f32.
mlir::Value realOfByte(Emit &emit, mlir::Value bytes, mlir::Type element);

} // namespace kiln::lowering

// Floats of 8 bits in arithmetic on their bits.

#pragma once

#include "lowering/tile/Emit.h"

namespace kiln::lowering {

/// Bytes as the f32 of the same numbers, where they are floats of 8 bits of type `element`.
mlir::Value realOfByte(Emit &emit, mlir::Value bytes, mlir::Type element);

} // namespace kiln::lowering

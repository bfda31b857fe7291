// The order of the slots of an argument block. It is defined only here: backends read slots in this order, and the
// runtime writes them in this order.

#pragma once

#include "lowering/Abi.h"

#include "mlir/IR/TypeRange.h"

#include <vector>

namespace kiln::lowering {

/// The slots after the grid for arguments of these types, scalars and strided views. For each argument in turn: a
/// view's pointer, dynamic extents and dynamic strides, or a scalar.
std::vector<abi::Slot> slotsOf(mlir::TypeRange arguments);

} // namespace kiln::lowering

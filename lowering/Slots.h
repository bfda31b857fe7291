// The order of the slots of an argument block: stated here, and nowhere else. Backends read slots in this order, the
// runtime writes them.

#pragma once

#include "lowering/Abi.h"

#include "mlir/IR/TypeRange.h"

#include <vector>

namespace kiln::lowering {

/// The slots after the grid of a kernel whose arguments, scalars and strided views, have these types: a view's pointer,
/// its dynamic extents and its dynamic strides, or a scalar, for one argument after the other.
std::vector<abi::Slot> slotsOf(mlir::TypeRange arguments);

} // namespace kiln::lowering

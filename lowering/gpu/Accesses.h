// Properties of a memory access in layouts other than the one that gpu-coalesce-accesses chose (CoalesceAccesses.cpp).

#pragma once

#include "dialect/simt/layout/Blocked.h"
#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// The memory traffic of the access if its tile had `layout`.
simt::Traffic trafficIn(const simt::TileLayout &layout, tile::AccessOp access);

/// Records that a thread of the access moves `vector` elements at once (`simt.vector`), and whether the view may end
/// within them (`simt.ragged`).
void setVector(tile::AccessOp access, int64_t vector);

/// The load of a product's operand, and whether it is transposed. Between load and product there may be reshapes that
/// drop leading extents of 1, and layout conversions. Null if there are other operations (SelectInstructions.cpp).
std::pair<tile::LoadOp, bool> operandLoad(mlir::Value operand);

} // namespace kiln::lowering::gpu

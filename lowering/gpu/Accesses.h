// What is known of an access of memory beyond the layout that gpu-coalesce-accesses chose for it
// (CoalesceAccesses.cpp).

#pragma once

#include "dialect/simt/layout/Blocked.h"
#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// What the access would move if its tile lay in `layout`.
simt::Traffic trafficIn(const simt::TileLayout &layout, tile::AccessOp access);

/// Records that a thread of the access moves `vector` elements at once (`simt.vector`), and whether the view may end
/// within them (`simt.ragged`).
void setVector(tile::AccessOp access, int64_t vector);

/// The load that an operand of a product is once leading dimensions, which are 1, have been dropped and it has been
/// converted, and whether it is transposed; null where other operations come between (SelectInstructions.cpp).
std::pair<tile::LoadOp, bool> operandLoad(mlir::Value operand);

} // namespace kiln::lowering::gpu

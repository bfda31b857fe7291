// What is known of an access of memory beyond the layout that gpu-coalesce-accesses chose for it
// (CoalesceAccesses.cpp).

#pragma once

#include "dialect/simt/layout/Blocked.h"
#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// What the access would move if its tile lay in `layout`.
simt::Traffic trafficIn(const simt::TileLayout &layout, tile::AccessOp access);

} // namespace kiln::lowering::gpu

// All operations of the `tile` dialect, family by family.

#ifndef KILN_DIALECT_TILE_TILEOPS_TD
#define KILN_DIALECT_TILE_TILEOPS_TD

include "dialect/tile/TileDialect.td"
include "dialect/tile/ElementwiseOps.td"
include "dialect/tile/ShapeOps.td"
include "dialect/tile/MemoryOps.td"
include "dialect/tile/ReduceOps.td"
include "dialect/tile/SortOps.td"

#endif

// Calls of the runtime's check and print, for the passes that lower `tile.check` and `tile.print`.
//
// The operations must have been through `tile-declare-console`, which leaves the constants and declarations in the
// module.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "mlir/IR/Builders.h"

namespace kiln::lowering {

/// Calls `kiln_check_failed` for the i64 row-major `element` of the check's condition.
void emitCheckFailed(mlir::OpBuilder &builder, tile::CheckOp op, mlir::Value element);

/// Calls `kiln_print` on `data`, a dense row-major memref of the tile's elements (bool as i8; one element for a
/// scalar).
void emitPrint(mlir::OpBuilder &builder, tile::PrintOp op, mlir::Value data);

} // namespace kiln::lowering

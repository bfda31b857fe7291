// Calls of the runtime's check and print, for the passes that lower `tile.check` and `tile.print`.
//
// The operations must have been through `tile-declare-console`, which leaves the constants and declarations in the
// module.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "mlir/IR/Builders.h"

namespace kiln::lowering {

/// The program's linear number, as lowering/Abi.h counts, as i64.
mlir::Value emitLinearProgram(mlir::OpBuilder &builder, mlir::Location loc);

/// The number N of the text `text_N` that an attribute of the operation names: `tile.message`, `tile.where` or
/// `tile.label`.
int64_t textNumber(mlir::Operation *op, llvm::StringRef attribute);

/// Calls `kiln_check_failed` for the i64 row-major `element` of the check's condition.
void emitCheckFailed(mlir::OpBuilder &builder, tile::CheckOp op, mlir::Value element);

/// Calls `kiln_print` on `data`, a dense row-major memref of the tile's elements (bool as i8; one element for a
/// scalar).
void emitPrint(mlir::OpBuilder &builder, tile::PrintOp op, mlir::Value data);

} // namespace kiln::lowering

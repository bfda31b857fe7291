// Texts and functions of a module that calls the runtime, and the calls of check and print, for the passes that lower
// `tile.check` and `tile.print`. These operations must have been through `tile-declare-console`.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln::lowering {

/// Adds declarations and texts for calls of the runtime to a module. Function passes must not do this.
class ConsoleSymbols {
public:
  explicit ConsoleSymbols(mlir::ModuleOp module) : module(module) {}
  /// A zero-terminated constant with this text; equal texts share one.
  mlir::FlatSymbolRefAttr text(llvm::StringRef value);
  void declare(llvm::StringRef name, mlir::TypeRange parameters, mlir::TypeRange results = {});

private:
  mlir::ModuleOp module;
  llvm::StringMap<mlir::FlatSymbolRefAttr> texts;
  int count = 0;
};

/// The user's line, `file:line`: the first one in a location, which may be fused or a call site.
std::string innermostLine(mlir::Location loc);

/// The address of a text.
mlir::Value textAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::FlatSymbolRefAttr text);

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

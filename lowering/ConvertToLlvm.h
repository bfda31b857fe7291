// The last lowering, shared by all targets: from the upstream dialects to the LLVM dialect.

#pragma once

#include "mlir/Pass/PassManager.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kiln::lowering {

/// Registers the dialects that remain before this lowering, with their conversions.
void registerLlvmConversions(mlir::DialectRegistry &registry);

/// Adds one pass that converts all dialects registered with a conversion, also those of a backend, in one walk.
/// Separate passes would insert and then remove casts between them.
void addConvertToLlvm(mlir::OpPassManager &pm);

} // namespace kiln::lowering

// The last step that all targets share: the upstream dialects become LLVM's.

#pragma once

#include "mlir/Pass/PassManager.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kiln::lowering {

/// Registers the dialects that every target's code consists of then, with what each becomes.
void registerLlvmConversions(mlir::DialectRegistry &registry);

/// Adds the pass that converts all dialects registered with such a conversion, a backend's own ones too, in one walk:
/// a pass for each would build and then remove casts wherever two of them meet.
void addConvertToLlvm(mlir::OpPassManager &pm);

} // namespace kiln::lowering

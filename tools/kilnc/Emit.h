// What kilnc prints: a stage of a kernel's compilation.

#pragma once

#include "lowering/Backend.h"

namespace kiln::tools {

/// The stages of a target, in their order, with commas; the last is its code.
std::string stageNames(const lowering::Backend &backend);
/// Whether a stage is bytes and no text.
bool isBinary(const std::string &stage);
/// Throws Error for a stage that the target has not.
void checkStage(const std::string &stage, const lowering::Backend &backend);

/// The text of a stage of `module`, or the code's bytes. Compiles no further than needed.
std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::Backend &backend);

/// What the target makes of a kernel; throws Error where it does not tell.
std::string explained(mlir::ModuleOp module, const lowering::Backend &backend);

} // namespace kiln::tools

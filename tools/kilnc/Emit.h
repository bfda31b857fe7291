// What kilnc prints: a stage of a kernel's compilation.

#pragma once

#include "lowering/Pipelines.h"

namespace kiln::tools {

/// The stages that --emit knows, in their order, with commas.
std::string stageNames();
/// Throws Error for a stage that is none.
void checkStage(const std::string &stage);

/// The text of a stage of `module`, or the object's bytes. Compiles no further than needed.
std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::CpuTarget &target,
                 const lowering::CpuOptions &options);

} // namespace kiln::tools

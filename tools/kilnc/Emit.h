// Prints a stage of a kernel's compilation.

#pragma once

#include "lowering/Backend.h"

namespace kiln::tools {

/// The stages of CPUs, or of GPUs, in their order, with commas.
std::string stageNames(bool ofGpu);
/// The backend for `target` and `stage`: the reference backend with `oracle` or for its own stage; for a cubin, a GPU's
/// backend with nvJitLink. Throws Error for a stage that the target lacks.
std::shared_ptr<const lowering::Backend> backendFor(const std::string &target, const std::string &stage, bool oracle);
/// Whether a stage is bytes and no text.
bool isBinary(const std::string &stage);

/// The text of a stage of `module`, or the code's bytes. Compiles no further than needed.
std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::Backend &backend);

/// The explanation of a target's code for a kernel; throws Error if the target has none.
std::string explained(mlir::ModuleOp module, const lowering::Backend &backend);

} // namespace kiln::tools

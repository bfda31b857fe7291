// What kilnc prints: a stage of a kernel's compilation, its explanation, a list of kernels, the picture of a layout.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "lowering/Backend.h"

namespace kiln::tools {

/// The stages of CPUs, or of GPUs, in their order, with commas.
std::string stageNames(bool ofGpu);
/// The backend for `target` and `stage`: the reference backend with `isReference` or for its own stage; for a cubin, a
/// GPU's backend with nvJitLink. Throws Error for a stage that the target lacks.
std::shared_ptr<const lowering::Backend> backendFor(const std::string &target, const std::string &stage,
                                                    bool isReference);
/// Whether a stage is bytes and no text.
bool isBinary(const std::string &stage);

/// The text of a stage of `module`, or the code's bytes. Compiles no further than needed. Prints the compiler's
/// warnings, with the config that they are about.
std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::Backend &backend,
                 const std::string &config);

/// The explanation of a target's code for a kernel; throws Error if the target has none.
std::string explained(mlir::ModuleOp module, const lowering::Backend &backend);

/// The kernels, each with a line for every argument (name, view or scalar, description) and every field of its config
/// (name, default, description).
std::string listOf(const std::vector<const Kernel *> &kernels);

/// The picture (SVG) of a layout as --explain and the stages print it, `16x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1
/// d0:2 d0:4], warp []`: the thread and register of each element. Or the picture of a tile in swizzled shared memory,
/// `shared 64x64xbf16`: the banks of each 16 bytes. With `shared 64x64xbf16 columns`, rows are along the first
/// dimension. Throws Error for a text that is neither.
std::string drawLayout(const std::string &text);

} // namespace kiln::tools

// Emits PTX from an LLVM module.

#pragma once

#include "lowering/Backend.h"
#include "lowering/gpu/GpuTarget.h"

namespace kiln::lowering::gpu {

/// The module as PTX text, without a terminating zero. `sink`, if set, receives the stages "llvm" and "ptx". Throws
/// BackendError.
std::vector<char> emitPtx(llvm::Module &module, const GpuTarget &target, const StageSink &sink);

} // namespace kiln::lowering::gpu

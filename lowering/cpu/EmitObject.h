// From an LLVM module to an ELF object in memory.

#pragma once

#include "lowering/Backend.h"
#include "lowering/cpu/CpuTarget.h"

#include "llvm/TargetParser/Triple.h"

namespace llvm {
class Module;
class Target;
} // namespace llvm

namespace kiln::lowering::cpu {

/// LLVM's x86 backend, initialised on the first call.
const llvm::Target &x86Backend();
/// The triple of all generated code.
const llvm::Triple &cpuTriple();

/// Optimises `module` and emits it for `target`; `sink` receives the stages "llvm" and "asm". The code of the reference
/// backend (isReference) is hardly optimised, which makes compiling fast. Throws BackendError (FatalErrors.h).
std::vector<char> emitObject(llvm::Module &module, const CpuTarget &target, bool isReference, const StageSink &sink);

} // namespace kiln::lowering::cpu

// From an LLVM module to an ELF object in memory, and LLVM's fatal errors as C++ exceptions.

#pragma once

#include "lowering/Pipelines.h"

#include "llvm/TargetParser/Triple.h"

#include <functional>
#include <stdexcept>

namespace llvm {
class Module;
class Target;
} // namespace llvm

namespace kiln::lowering {

/// LLVM's x86 backend, initialised on the first call.
const llvm::Target &x86Backend();
/// The triple of all generated code.
const llvm::Triple &cpuTriple();

/// The compiler could not go on: what LLVM's report_fatal_error said, an error in its diagnostics, or a crash.
struct BackendError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `body`; a fatal error of LLVM, a failed assertion or another crash (Crashes.h) on this thread in the meantime
/// leaves it as a BackendError instead of ending the process, and memory that is not to be had as std::bad_alloc. What
/// was on the stack then is leaked. LLVM's or MLIR's context must not be used for anything but destruction, and a
/// module that was being changed not even for that.
void withFatalErrorsThrown(const std::function<void()> &body);

/// Optimises `module` and emits it for `target`; `sink` gets the stages "llvm" and "asm". Throws BackendError.
std::vector<char> emitObject(llvm::Module &module, const CpuTarget &target, const StageSink &sink);

} // namespace kiln::lowering

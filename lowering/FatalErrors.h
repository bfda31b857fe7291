// LLVM's fatal errors as C++ exceptions.

#pragma once

#include <functional>
#include <stdexcept>

namespace kiln::lowering {

/// The compiler could not go on: what LLVM's report_fatal_error said, an error in its diagnostics, or a crash.
struct BackendError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `body`; a fatal error of LLVM, a failed assertion or another crash (Crashes.h) on this thread in the meantime
/// leaves it as a BackendError instead of ending the process, and memory that is not to be had as std::bad_alloc. What
/// was on the stack then is leaked. LLVM's or MLIR's context must not be used for anything but destruction, and a
/// module that was being changed not even for that.
void withFatalErrorsThrown(const std::function<void()> &body);

} // namespace kiln::lowering

// LLVM's fatal errors as C++ exceptions.

#pragma once

#include <functional>
#include <stdexcept>

namespace kiln::lowering {

/// The compiler could not continue: a fatal error of LLVM, an error in its diagnostics, or a crash.
struct BackendError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `body`. A fatal error of LLVM, a failed assertion or another crash (Crashes.h) on this thread becomes a
/// BackendError and does not end the process. A failed allocation becomes std::bad_alloc. Memory owned by the stack is
/// leaked. Afterwards the contexts of LLVM and MLIR may only be destroyed, and a module that was being changed not even
/// that.
void withFatalErrorsThrown(const std::function<void()> &body);

} // namespace kiln::lowering

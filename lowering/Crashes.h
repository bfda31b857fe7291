// Recovery from crashes of the compiler, and LLVM's fatal errors as C++ exceptions. A failed assertion, a bad access or
// a stack overflow must not end the program that uses Kiln.

#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>
#include <functional>
#include <stdexcept>

namespace kiln::lowering {

/// Runs `body` on this thread. Returns 0 on success, or after a crash the signal (SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
/// SIGILL or SIGTRAP). After a crash its stack frames are dropped without destructors: memory is leaked, and data that
/// it was changing must not be used. Exceptions pass through.
///
/// Limit: locks that the crashed code held stay locked. A crash inside malloc, or inside tables of a context that other
/// threads use, may leave a lock held. Then these threads and this one wait forever.
///
/// Signal handlers are installed while at least one thread is in this function. A signal of another thread, or sent by
/// another process, goes to the previous handler or has its default effect. The last thread restores the previous
/// handler, unless a new one was installed meanwhile. Concurrent and nested calls are allowed.
int catchCrash(llvm::function_ref<void()> body);

/// Whether that many more bytes of address space are available. LLVM and MLIR use null pointers if malloc fails, so a
/// lack of memory (mostly a limit on addresses) looks like a crash.
bool hasRoom(size_t bytes);

// --- Fatal errors of LLVM --------------------------------------------------------------------------------------------

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

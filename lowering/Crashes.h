// Recovery from crashes of the compiler. A failed assertion, a bad access or a stack overflow must not end the program
// that uses Kiln.

#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace kiln::lowering {

/// Runs `body` on this thread. Returns 0 on success, or after a crash the signal (SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
/// SIGILL or SIGTRAP). After a crash its stack frames are dropped without destructors: memory is leaked, and data that
/// it was changing must not be used. Exceptions pass through.
///
/// Limit: locks that the crashed code held stay locked. After a crash inside malloc, or inside LLVM's or MLIR's tables
/// of a context that other threads use, these threads and this one can wait forever.
///
/// Signal handlers are installed while at least one thread is in this function. A signal of another thread, or sent by
/// another process, goes to the previous handler or has its default effect. The last thread restores the previous
/// handler, unless a new one was installed meanwhile. Concurrent and nested calls are allowed.
int crashOf(llvm::function_ref<void()> body);

/// Whether that many more bytes of address space are available. LLVM and MLIR use null pointers if malloc fails, so a
/// lack of memory (mostly a limit on addresses) looks like a crash.
bool hasRoom(size_t bytes);

} // namespace kiln::lowering

// Crashes of the compiler as something to recover from: a failed assertion, a bad access or an exhausted stack must not
// take the program with it that uses Kiln.

#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace kiln::lowering {

/// Runs `body` on this thread. 0 when it came to its end; when it crashed instead, the signal (SIGABRT, SIGSEGV,
/// SIGBUS, SIGFPE, SIGILL or SIGTRAP). Its frames are then gone without their destructors having run: what it held is
/// leaked, and whatever it was changing must not be used again. Exceptions pass through.
///
/// Handlers stand while at least one thread is in here. A signal of a thread that is not, or one sent by another
/// process, goes to the handler that was there before, or does what it did by default; once the last thread has left,
/// that handler is in its place again, unless somebody has put another one there meanwhile. Threads may be in here at
/// once, and a body may call this again.
int crashOf(llvm::function_ref<void()> body);

/// Whether so many more bytes of addresses can be had. LLVM and MLIR go on with null pointers where malloc gave none,
/// so that a lack of memory (a limit on addresses, mostly) looks like a crash.
bool hasRoom(size_t bytes);

} // namespace kiln::lowering

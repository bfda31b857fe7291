// A fatal error of LLVM, or a crash of the compiler, leaves the body that it happened in as an exception.

#include "lowering/FatalErrors.h"

#include "lowering/Crashes.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace kiln::lowering {

/// Whether a fatal error on this thread has somewhere to go.
static thread_local bool catching = false;

static void throwFatalError(void *, const char *reason, bool) {
  if (catching)
    throw BackendError(reason);
  // Not ours: LLVM ends the process when this returns, as it would have done without us.
  llvm::errs() << "LLVM ERROR: " << reason << "\n";
}

/// LLVM's own containers ask malloc; what new says, LLVM's frames let pass.
static void throwNoMemory(void *, const char *, bool) { throw std::bad_alloc(); }

/// What is left of addresses when a crash is the lack of them: the largest piece that malloc asks the system for.
static constexpr size_t shortage = size_t{128} << 20;

/// Runs `body`; a crash leaves it as a BackendError.
static void withCrashesThrown(const std::function<void()> &body) {
  const int signal = crashOf([&] { body(); });
  if (signal && !hasRoom(shortage))
    throw std::bad_alloc();
  if (signal)
    throw BackendError(std::string("the compiler crashed: SIG") + sigabbrev_np(signal) + " (" + strsignal(signal) +
                       ")");
}

void withFatalErrorsThrown(const std::function<void()> &body) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(throwFatalError);
    llvm::install_bad_alloc_error_handler(throwNoMemory);
  });
  // LLVM is built without landing pads: its frames vanish without running destructors, as all do after a crash. The
  // list of what it was doing (for crash reports) lives on those frames and has to be cut back by hand.
  const void *stack = llvm::SavePrettyStackState();
  struct Catching {
    const bool outer = std::exchange(catching, true);
    ~Catching() { catching = outer; }
  } scope;
  try {
    withCrashesThrown(body);
  } catch (...) {
    llvm::RestorePrettyStackState(stack);
    throw;
  }
}

} // namespace kiln::lowering

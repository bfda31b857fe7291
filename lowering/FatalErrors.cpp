// Converts a fatal error of LLVM, or a crash of the compiler, to an exception. The exception is not thrown through
// LLVM's frames, which are built without landing pads. Instead, LLVM's last message is recorded, crashOf discards
// LLVM's frames, and the exception is thrown outside of them. Only std::bad_alloc may pass LLVM's frames. operator new
// throws it. onNoMemory throws it outside of withFatalErrorsThrown, where a lack of memory would otherwise end the
// process.

#include "lowering/FatalErrors.h"

#include "lowering/Crashes.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

namespace kiln::lowering {

namespace {
/// LLVM's last message on this thread, and its receiver.
class LastWords {
public:
  LastWords() { innermost = this; }
  ~LastWords() {
    innermost = outer;
    // The entries of PrettyStackTrace, for crash reports, are on LLVM's own frames, which may be gone.
    llvm::RestorePrettyStackState(stack);
  }
  LastWords(const LastWords &) = delete;

  static thread_local LastWords *innermost; // null: no receiver

  std::string reason;    // of a fatal error
  bool noMemory = false; // malloc failed for LLVM's containers

private:
  LastWords *const outer = innermost;
  const void *const stack = llvm::SavePrettyStackState();
};
thread_local LastWords *LastWords::innermost = nullptr;
} // namespace

static void onFatalError(void *, const char *reason, bool) {
  if (!LastWords::innermost) { // no receiver: LLVM ends the process when this returns
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return;
  }
  LastWords::innermost->reason = reason;
  std::abort();
}

static void onNoMemory(void *, const char *, bool) {
  if (!LastWords::innermost)
    throw std::bad_alloc();
  LastWords::innermost->noMemory = true;
  std::abort();
}

/// A crash counts as out of memory if less address space than this is left. It is the largest piece that malloc
/// requests from the system.
static constexpr size_t shortage = size_t{128} << 20;

void withFatalErrorsThrown(const std::function<void()> &body) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(onFatalError);
    llvm::install_bad_alloc_error_handler(onNoMemory);
  });
  const LastWords words;
  const int signal = crashOf([&] { body(); });
  if (!signal)
    return;
  if (!words.reason.empty())
    throw BackendError(words.reason);
  if (words.noMemory || !hasRoom(shortage))
    throw std::bad_alloc();
  throw BackendError(std::string("the compiler crashed: SIG") + sigabbrev_np(signal) + " (" + strsignal(signal) + ")");
}

} // namespace kiln::lowering

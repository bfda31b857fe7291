// A fatal error of LLVM, or a crash of the compiler, leaves the body that it happened in as an exception. None is
// thrown through LLVM's frames, which are built without landing pads: what LLVM says last is noted, and crashOf takes
// its frames down. The exception begins in our own. Only std::bad_alloc may begin in LLVM's: operator new throws it,
// and so do we outside of any body, where a lack of memory would end the process.

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
/// What LLVM says on this thread before it gives up, and where it is heard.
class LastWords {
public:
  LastWords() { innermost = this; }
  ~LastWords() {
    innermost = outer;
    // What LLVM was doing (for crash reports) is listed on its own frames, which may be gone.
    llvm::RestorePrettyStackState(stack);
  }
  LastWords(const LastWords &) = delete;

  static thread_local LastWords *innermost; // null when nobody listens

  std::string reason;    // of a fatal error
  bool noMemory = false; // malloc had none for LLVM's containers

private:
  LastWords *const outer = innermost;
  const void *const stack = llvm::SavePrettyStackState();
};
thread_local LastWords *LastWords::innermost = nullptr;
} // namespace

static void onFatalError(void *, const char *reason, bool) {
  if (!LastWords::innermost) { // not ours: LLVM ends the process when this returns, as it would have done without us
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

/// What is left of addresses when a crash is the lack of them: the largest piece that malloc asks the system for.
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

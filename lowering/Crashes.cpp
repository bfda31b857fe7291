// Signal handlers that jump from a crash back to catchCrash.

#include "lowering/Crashes.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::lowering {

static constexpr int caught[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

/// The jump target of this thread after a crash; null outside of catchCrash. A handler may read it on any thread, so
/// its thread-local memory must not be allocated lazily.
[[gnu::tls_model("initial-exec")]] static thread_local sigjmp_buf *landing = nullptr;

/// The number of threads in catchCrash, and the actions that were set before the first of them.
static std::mutex entering;
static int inside = 0;
static struct sigaction before[std::size(caught)];

/// Handles the signal as the program would without these handlers.
static void passOn(int signal, const struct sigaction &action, siginfo_t *info, void *context) {
  if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN)
    return;
  if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL) {
    sigaction(signal, &action, nullptr);
    raise(signal); // delivered when this handler returns, at the fault itself
    return;
  }
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &action.sa_mask, &mask);
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

/// Whether this thread caused the signal, by a fault or abort(); other signals come from outside.
static bool isOwn(const siginfo_t &info) {
  return info.si_code > 0 || (info.si_code == SI_TKILL && info.si_pid == getpid());
}

static void onSignal(int signal, siginfo_t *info, void *context) {
  if (landing && isOwn(*info))
    siglongjmp(*landing, signal);
  for (size_t i = 0; i < std::size(caught); ++i)
    if (caught[i] == signal)
      passOn(signal, before[i], info, context);
}

namespace {
/// The handlers, installed while at least one thread needs them.
class Handlers {
public:
  Handlers() {
    const std::lock_guard lock(entering);
    if (inside++ > 0)
      return;
    struct sigaction ours = {};
    ours.sa_sigaction = onSignal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < std::size(caught); ++i)
      sigaction(caught[i], &ours, &before[i]);
  }
  ~Handlers() {
    const std::lock_guard lock(entering);
    if (--inside > 0)
      return;
    for (size_t i = 0; i < std::size(caught); ++i) {
      struct sigaction now;
      sigaction(caught[i], nullptr, &now);
      if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == onSignal)
        sigaction(caught[i], &before[i], nullptr);
    }
  }
  Handlers(const Handlers &) = delete;
};

/// A stack for the handler, which runs when the thread's own is exhausted. An alternate stack that the thread already
/// has is used instead.
class SignalStack {
public:
  SignalStack() {
    stack_t now;
    sigaltstack(nullptr, &now);
    if (!(now.ss_flags & SS_DISABLE))
      return;
    memory = std::make_unique_for_overwrite<char[]>(bytes);
    stack_t ours = {};
    ours.ss_sp = memory.get();
    ours.ss_size = bytes;
    sigaltstack(&ours, nullptr);
  }
  ~SignalStack() {
    if (!memory)
      return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack &) = delete;

private:
  static constexpr size_t bytes = 64 << 10; // the registers of AVX-512 and AMX that the kernel saves take 11 KB
  std::unique_ptr<char[]> memory;
};

/// Sets this thread's jump target to `place` during its lifetime.
class Landing {
public:
  explicit Landing(sigjmp_buf &place) : outer(landing) { landing = &place; }
  ~Landing() { landing = outer; }
  Landing(const Landing &) = delete;

private:
  sigjmp_buf *const outer;
};
} // namespace

int catchCrash(llvm::function_ref<void()> body) {
  const SignalStack stack;
  const Handlers handlers;
  sigjmp_buf place;
  const Landing here(place); // not modified after sigsetjmp, so that it is valid after the jump
  if (const int signal = sigsetjmp(place, /*savesigs=*/1))
    return signal;
  body();
  return 0;
}

bool hasRoom(size_t bytes) {
  void *const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return false;
  ::munmap(place, bytes);
  return true;
}

// --- Fatal errors of LLVM --------------------------------------------------------------------------------------------

// Converts a fatal error of LLVM, or a crash of the compiler, to an exception. The exception is not thrown through
// LLVM's frames, which are built without landing pads. Instead, LLVM's last message is recorded, catchCrash discards
// LLVM's frames, and the exception is thrown outside of them. Only std::bad_alloc may pass LLVM's frames. operator new
// throws it. onNoMemory throws it outside of withFatalErrorsThrown, where a lack of memory would otherwise end the
// process.

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
  const int signal = catchCrash([&] { body(); });
  if (!signal)
    return;
  if (!words.reason.empty())
    throw BackendError(words.reason);
  if (words.noMemory || !hasRoom(shortage))
    throw std::bad_alloc();
  throw BackendError(std::string("the compiler crashed: SIG") + sigabbrev_np(signal) + " (" + strsignal(signal) + ")");
}

} // namespace kiln::lowering

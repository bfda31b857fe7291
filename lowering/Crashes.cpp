// Signal handlers that jump back to where the crashed thread entered, while there is such a place.

#include "lowering/Crashes.h"

#include <csetjmp>
#include <csignal>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::lowering {

static constexpr int caught[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

/// Where this thread goes on after a crash; null outside of crashOf. A handler may read it on any thread, so it must
/// not be of the kind whose memory is allocated when first touched.
[[gnu::tls_model("initial-exec")]] static thread_local sigjmp_buf *landing = nullptr;

/// Threads in crashOf, and the actions that were set before the first of them came.
static std::mutex entering;
static int inside = 0;
static struct sigaction before[std::size(caught)];

/// What the program would have done with the signal without us.
static void passOn(int signal, const struct sigaction &action, siginfo_t *info, void *context) {
  if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN)
    return;
  if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL) {
    sigaction(signal, &action, nullptr);
    raise(signal); // comes when this handler has returned: to where the fault is
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

/// Of this thread's own making: a fault, or what abort() raises. Not a signal from outside.
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
/// The handlers, while one thread at least wants them.
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

/// A stack for the handler, which runs when the thread's own is exhausted. One that the thread has already will do.
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

/// Makes `place` the landing of this thread while it lives.
class Landing {
public:
  explicit Landing(sigjmp_buf &place) : outer(landing) { landing = &place; }
  ~Landing() { landing = outer; }
  Landing(const Landing &) = delete;

private:
  sigjmp_buf *const outer;
};
} // namespace

int crashOf(llvm::function_ref<void()> body) {
  const SignalStack stack;
  const Handlers handlers;
  sigjmp_buf place;
  const Landing here(place); // not changed after the jump is set
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

} // namespace kiln::lowering

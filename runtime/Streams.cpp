// Standard streams, and reporting errors on them.

#include "runtime/Streams.h"

#include "dialect/dsl/Types.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <system_error>
#include <unistd.h>

namespace kiln {

namespace {
/// During its lifetime, this thread's writes to a pipe without a reader fail with EPIPE and raise no signal.
class WithoutPipeSignal {
public:
  WithoutPipeSignal() {
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigset_t waiting;
    pending = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
    blocked = pthread_sigmask(SIG_BLOCK, &pipe, &before) == 0;
  }
  ~WithoutPipeSignal() {
    if (!blocked)
      return;
    const int kept = errno;
    const timespec none = {};
    while (!pending && sigtimedwait(&pipe, nullptr, &none) < 0 && errno == EINTR)
      ;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = kept;
  }
  WithoutPipeSignal(const WithoutPipeSignal &) = delete;

private:
  sigset_t pipe, before;
  bool pending, blocked; // an earlier pending signal stays; a signal that could not be blocked is not consumed
};
} // namespace

/// Writes all of `text`, waiting for nonblocking streams. Returns 0 or errno.
static int writeAll(int stream, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t wrote = ::write(stream, text.data(), text.size());
    if (wrote >= 0) {
      text.remove_prefix(static_cast<size_t>(wrote));
    } else if (errno == EAGAIN) {
      pollfd ready = {stream, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void openStandardStreams() noexcept {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      // The lowest free descriptor becomes this stream's. It is opened in the wrong direction, so that its use fails.
      (void)!::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  // LLVM's streams end the program with status 1 if they are destroyed with an unreported error. They are created
  // before this is registered, so this runs first.
  llvm::outs();
  llvm::errs();
  std::atexit([] {
    llvm::outs().flush();
    llvm::outs().clear_error();
    llvm::errs().clear_error();
  });
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) {
    say("error: out of host memory\n");
    _exit(3);
  });
}

void say(std::string_view message) noexcept {
  const WithoutPipeSignal guard;
  writeAll(STDERR_FILENO, message);
}

void show(std::string_view text) noexcept {
  const WithoutPipeSignal guard;
  std::fwrite(text.data(), 1, text.size(), stdout); // one call, so that lines of several threads do not interleave
}

void writeResult(std::string_view text) {
  const WithoutPipeSignal guard;
  int error = std::fflush(stdout) != 0 || std::ferror(stdout) ? (errno ? errno : EIO) : 0;
  if (!error)
    error = writeAll(STDOUT_FILENO, text);
  if (error)
    throw Error(std::string("cannot write to standard output: ") + std::strerror(error), Fault::device);
}

std::string messageOf(const std::exception &error) {
  if (dynamic_cast<const std::bad_alloc *>(&error))
    return "out of host memory";
  if (const auto *system = dynamic_cast<const std::system_error *>(&error))
    return std::string("the system failed: ") + system->what();
  return error.what();
}

int exitStatus(const std::exception &error) noexcept {
  if (const auto *ours = dynamic_cast<const Error *>(&error))
    switch (ours->fault) {
    case Fault::user:
      return 2;
    case Fault::device:
      return 3;
    case Fault::internal:
      return 4;
    }
  const bool environment =
      dynamic_cast<const std::bad_alloc *>(&error) || dynamic_cast<const std::system_error *>(&error);
  return environment ? 3 : 4;
}

int report(std::string_view program, const std::exception &error) noexcept {
  const int status = exitStatus(error);
  try {
    std::string text = messageOf(error);
    text.erase(text.find_last_not_of('\n') + 1);
    const bool located = text.substr(0, text.find('\n')).find(": error: ") != std::string::npos;
    // Kiln's internal errors say so in their text.
    const bool foreign = status == 4 && !dynamic_cast<const Error *>(&error);
    const std::string prefix = std::string(program) + (foreign ? ": internal error: " : ": error: ");
    say((located ? "" : prefix) + text + "\n");
  } catch (...) { // out of memory for the text
    say(error.what());
    say("\n");
  }
  return status;
}

int runProgram(std::string_view program, const std::function<int()> &work) noexcept {
  openStandardStreams();
  try {
    return work();
  } catch (const std::exception &error) {
    return report(program, error);
  }
}

} // namespace kiln

// Reads whole files.

#include "tools/files/Files.h"

#include "dialect/dsl/Types.h"
#include "runtime/PrivateFolder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::tools {

[[noreturn]] static void cannotRead(const std::string &path, int failure) {
  if (path == "-" && failure == EBADF)
    throw Error("expected to read standard input, but it is closed", Fault::device);
  throw Error(fmt::format("expected to read '{}', but could not: {}", path, std::strerror(failure)), Fault::device);
}

std::string readInput(const std::string &path, int64_t most) {
  const Descriptor file(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file)
    cannotRead(path, errno);
  struct stat status;
  const bool isPipe = path != "-" && ::fstat(file.get(), &status) == 0 && S_ISFIFO(status.st_mode);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EAGAIN) { // no data yet
      pollfd waiting{file.get(), POLLIN, 0};
      ::poll(&waiting, 1, -1);
      continue;
    }
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      cannotRead(path, errno);
    if (got == 0 && isPipe && text.empty())
      throw Error(fmt::format("expected to read '{}', but it is a pipe that nobody writes to", path), Fault::device);
    if (got == 0)
      return text;
    text.append(buffer, got);
    if (static_cast<int64_t>(text.size()) > most)
      throw Error(fmt::format("expected '{}' to have at most {} MiB, but it has more", path, most >> 20));
  }
}

void expectInput(const std::string &path, int64_t most) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    cannotRead(path, errno);
  if (!S_ISREG(status.st_mode))
    throw Error(fmt::format("expected to read '{}', but it is no regular file", path), Fault::device);
  if (status.st_size > most)
    throw Error(fmt::format("expected '{}' to have at most {} MiB, but it has more", path, most >> 20));
}

} // namespace kiln::tools

// Reads whole files.

#include "tools/files/Files.h"

#include "dialect/dsl/Types.h"
#include "runtime/PrivateFolder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::tools {

[[noreturn]] static void cannotRead(const std::string &path, int failure) {
  if (path == "-" && failure == EBADF)
    throw Error("expected to read standard input, but it is closed", Fault::device);
  throw Error(fmt::format("expected to read '{}', but could not: {}", path, std::strerror(failure)), Fault::device);
}

std::string readInput(const std::string &path, int64_t most) {
  const Descriptor file(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    cannotRead(path, errno);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      cannotRead(path, errno);
    if (got == 0)
      return text;
    text.append(buffer, got);
    if (static_cast<int64_t>(text.size()) > most)
      throw Error(fmt::format("expected '{}' to have at most {} MiB, but it has more", path, most >> 20));
  }
}

} // namespace kiln::tools

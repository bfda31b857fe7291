// Reads a file by open and pread.

#include "runtime/InputFile.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

[[noreturn]] static void fail(const std::string &path, const char *why) {
  throw Error(fmt::format("cannot read '{}': {}", path, why), Fault::device);
}

const char *kindOf(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

InputFile::InputFile(const std::string &path)
    : path(path), file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw Error(fmt::format("expected a file '{}', but there is none", path));
  if (file < 0 && errno == ENXIO)
    throw Error(fmt::format("expected '{}' to be a file, but it is a socket", path));
  struct stat status;
  if (file < 0 || ::fstat(file, &status) != 0)
    fail(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    ::close(file);
    throw Error(fmt::format("expected '{}' to be a file, but it is {}", path, kindOf(status.st_mode)));
  }
  bytes = status.st_size;
}

InputFile::~InputFile() { ::close(file); }

void InputFile::read(int64_t offset, void *to, int64_t count) const {
  char *next = static_cast<char *>(to);
  while (count > 0) {
    const ssize_t got = ::pread(file, next, std::min<int64_t>(count, int64_t{1} << 30), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      fail(path, got < 0 ? std::strerror(errno) : "it became shorter while it was read");
    next += got;
    offset += got;
    count -= got;
  }
}

} // namespace kiln

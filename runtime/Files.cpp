// Reads a file by open and pread. Writes to a temporary file and renames it; devices are written directly.

#include "runtime/Files.h"

#include "dialect/dsl/Types.h"
#include "runtime/PrivateFolder.h"
#include "runtime/Streams.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace fs = std::filesystem;

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

[[noreturn]] static void cannotWrite(const std::string &path, const std::string &why) {
  throw Error(fmt::format("expected to write '{}', but could not: {}", path, why), Fault::device);
}

/// Writes everything, to disk if `synced`, and closes the file. Returns 0 or errno.
static int writeAndClose(Descriptor file, std::string_view text, bool synced) {
  if (!file.writeAll(text) || (synced && ::fsync(file.get()) != 0))
    return errno;
  return ::close(file.release()) == 0 ? 0 : errno;
}

/// Creates a temporary file next to `target`, under a name that no other process uses or has left behind.
static Descriptor openAside(const std::string &target, std::string &name) {
  constexpr int maxTries = 100;
  std::random_device random;
  Descriptor file;
  for (int i = 0; i < maxTries && !file && (i == 0 || errno == EEXIST); ++i) {
    name = fmt::format("{}.{:08x}.tmp", target, random());
    file = Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  }
  return file;
}

void writeOutput(const std::string &path, const std::string &content) {
  if (path == "-")
    return writeResult(content);
  struct stat status;
  const bool isThere = ::stat(path.c_str(), &status) == 0;
  if (isThere && !S_ISREG(status.st_mode)) {
    Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (const int failure = device ? writeAndClose(std::move(device), content, /*synced=*/false) : errno)
      cannotWrite(path, std::strerror(failure));
    return;
  }
  std::error_code failure;
  const fs::path target = fs::weakly_canonical(path, failure); // follows links
  if (failure)
    cannotWrite(path, failure.message());
  std::string aside;
  Descriptor file = openAside(target.string(), aside);
  if (!file)
    cannotWrite(path, std::strerror(errno));
  if (isThere) // a replaced file keeps its mode
    std::ignore = ::fchmod(file.get(), status.st_mode & 07777);
  // Synchronised before it replaces the old file, so that after a crash one of the two is complete.
  const int error = writeAndClose(std::move(file), content, /*synced=*/isThere);
  if (error == 0 && ::rename(aside.c_str(), target.c_str()) == 0)
    return;
  const int why = error ? error : errno;
  ::unlink(aside.c_str());
  cannotWrite(path, std::strerror(why));
}

void expectFile(const std::string &path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw Error(fmt::format("expected '{}' to be a file, but it is {}", path, kindOf(status.st_mode)));
}

void expectWritable(const std::string &path) {
  expectFile(path);
  std::error_code failure;
  const fs::path target = fs::weakly_canonical(path, failure);
  std::string aside;
  if (failure || !openAside(target.string(), aside))
    cannotWrite(path, failure ? failure.message() : std::strerror(errno));
  ::unlink(aside.c_str());
}

std::string checksum(std::string_view bytes) {
  return fmt::format("{:016x}", llvm::xxh3_64bits(llvm::StringRef(bytes.data(), bytes.size())));
}

} // namespace kiln

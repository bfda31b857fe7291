// Writes to a temporary file and renames it; devices are written directly.

#include "runtime/OutputFile.h"

#include "dialect/dsl/Types.h"
#include "runtime/InputFile.h"
#include "runtime/PrivateFolder.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln {

[[noreturn]] static void cannotWrite(const std::string &path, const std::string &why) {
  throw Error(fmt::format("expected to write '{}', but could not: {}", path, why), Fault::device);
}

/// Writes everything, to disk if `synced`, and closes the file. Returns 0 or errno.
static int writeAndClose(Descriptor file, std::string_view text, bool synced) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0)
      return wrote < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  if (synced && ::fsync(file.get()) != 0)
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

} // namespace kiln

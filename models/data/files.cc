// POSIX calls whose errors name the file and the reason.

#include "models/data/files.h"
#include "dialect/dsl/Types.h"
#include "runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {

[[noreturn]] static void fail(const char *verb, const std::string &path, int error) {
  throw Error(fmt::format("cannot {} '{}': {}", verb, path, std::strerror(error)), Fault::device);
}

int writeAll(int file, const char *data, int64_t size) {
  while (size > 0) {
    const ssize_t wrote = write(file, data, static_cast<size_t>(std::min<int64_t>(size, int64_t{1} << 30)));
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return errno;
    data += wrote;
    size -= wrote;
  }
  return 0;
}

void writeSynced(const std::string &path, const std::vector<Bytes> &parts) {
  writeSynced(path, std::ssize(parts), [&](int64_t i) { return parts[i]; });
}

void writeSynced(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    fail("create", path, errno);
  int error = 0;
  try {
    for (int64_t i = 0; i < count && !error; ++i) {
      const Bytes bytes = part(i);
      error = writeAll(file, static_cast<const char *>(bytes.data), bytes.size);
    }
  } catch (...) {
    close(file);
    unlink(path.c_str());
    throw;
  }
  if (!error && fsync(file) != 0)
    error = errno;
  if (close(file) != 0 && !error)
    error = errno;
  if (error) {
    unlink(path.c_str());
    fail("write", path, error);
  }
}

void overwriteSynced(const std::string &path, const Bytes &bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0)
    fail("open", path, errno);
  int error = writeAll(file, static_cast<const char *>(bytes.data), bytes.size);
  if (!error && fsync(file) != 0)
    error = errno;
  if (close(file) != 0 && !error)
    error = errno;
  if (error)
    fail("write", path, error);
}

void replaceFile(const std::string &path, const std::string &text) {
  replaceFile(path, 1, [&](int64_t) { return Bytes{text.data(), std::ssize(text)}; });
}

void replaceFile(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part) {
  const std::string aside = path + ".partial";
  writeSynced(aside, count, part);
  if (std::rename(aside.c_str(), path.c_str()) != 0)
    fail("replace", path, errno);
}

void syncFolder(const std::string &path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    fail("open folder", path, errno);
  const int error = fsync(folder) != 0 ? errno : 0;
  close(folder);
  if (error)
    fail("sync folder", path, error);
}

std::string readFile(const std::string &path, int64_t most) {
  const InputFile file(path);
  if (file.size() > most)
    throw Error(fmt::format("expected at most {} bytes in '{}', but it has {}", most, path, file.size()));
  std::string text(file.size(), '\0');
  file.read(0, text.data(), file.size());
  return text;
}

} // namespace kiln

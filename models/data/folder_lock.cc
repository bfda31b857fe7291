// flock on `.lock`. The owner removes the file while it holds the lock. A process that opened the file before that
// notices, once it has the lock, that the path names another file, and tries again.

#include "models/data/folder_lock.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "runtime/Streams.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

namespace fs = std::filesystem;

/// Attempts to lock while other processes create and remove the folder or the file.
static constexpr int mostTries = 1000;

[[noreturn]] static void fail(const char *verb, const std::string &path) {
  if (errno == ENOTDIR)
    throw Error(fmt::format("expected '{}' to be in a folder, but it is below a file", path));
  throw Error(fmt::format("cannot {} '{}': {}", verb, path, std::strerror(errno)), Fault::device);
}

/// Whether `path` names the open `file`. True if the system cannot tell.
static bool leadsTo(const std::string &path, int file) {
  struct stat ours, there;
  if (::fstat(file, &ours) != 0)
    return errno != ESTALE;
  if (::lstat(path.c_str(), &there) != 0)
    return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/// The owner as written in the file: `process 123 on 'host'`.
static std::string thisProcess() {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on '{}'", ::getpid(), host.data());
}

static std::string readOwner(int file) {
  std::array<char, 512> text = {};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "another process"; // not written yet
}

FolderLock::FolderLock(const std::string &folder) : folder(folder), path(folder + "/.lock") {
  try {
    for (int tries = 0; !tryLock(); ++tries)
      if (tries == mostTries)
        throw Error(fmt::format("expected to lock '{}', but it does not stay in place", path), Fault::device);
  } catch (...) {
    release();
    throw;
  }
}

FolderLock::~FolderLock() { release(); }

bool FolderLock::holds() const { return leadsTo(path, file); }

void FolderLock::release() {
  if (file >= 0) {
    if (holds())
      ::unlink(path.c_str());
    ::close(file);
  }
  while (!made.empty() && ::rmdir(made.back().c_str()) == 0)
    made.pop_back();
}

void FolderLock::makeFolder() {
  std::vector<std::string> missing;
  std::error_code failure;
  for (fs::path p = fs::absolute(folder).lexically_normal(); !fs::exists(p, failure); p = p.parent_path())
    if (p.has_filename())
      missing.push_back(p);
  for (; !missing.empty(); missing.pop_back()) {
    if (::mkdir(missing.back().c_str(), 0777) == 0) {
      made.push_back(missing.back());
      continue;
    }
    const int error = errno;
    if (error == EEXIST && fs::is_symlink(missing.back()))
      throw Error(fmt::format("expected '{}' to be a folder, but it is a dangling link", missing.back()));
    if (error != EEXIST && error != ENOENT) { // another process created it, or removed its parent
      errno = error;
      fail("make folder", missing.back());
    }
  }
}

/// False if the folder or the file was removed meanwhile.
bool FolderLock::tryLock() {
  makeFolder();
  const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (opened < 0 && errno == ENOENT)
    return false;
  if (opened < 0)
    fail("write", path);
  while (::flock(opened, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR)
      continue;
    const int error = errno;
    const std::string owner = readOwner(opened);
    if (error == EWOULDBLOCK) {
      ::close(opened);
      throw Error(fmt::format("expected a folder that no other run uses, but {} writes to '{}'", owner, folder));
    }
    say(fmt::format("kiln: warning: cannot lock '{}': {}; nothing keeps a second run out of that folder\n", path,
                    std::strerror(error)));
    break;
  }
  if (!leadsTo(path, opened)) {
    ::close(opened);
    return false;
  }
  file = opened;
  const std::string owner = thisProcess();
  if (::ftruncate(file, 0) != 0) // the file offset is still 0
    fail("write", path);
  if (const int error = writeAll(file, owner.data(), std::ssize(owner))) {
    errno = error;
    fail("write", path);
  }
  return true;
}

} // namespace kiln

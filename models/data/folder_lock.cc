// flock on `.lock`. The file is removed by its owner while it still holds the lock; whoever opened it before that
// finds, once it has the lock, that the name leads elsewhere, and begins again.

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

/// Times that a lock is tried for while others make and remove the folder or the file.
static constexpr int mostTries = 1000;

[[noreturn]] static void fail(const char *verb, const std::string &path) {
  if (errno == ENOTDIR)
    throw Error(fmt::format("expected '{}' to be in a folder, but it is below a file", path));
  throw Error(fmt::format("cannot {} '{}': {}", verb, path, std::strerror(errno)), Fault::device);
}

/// Whether `path` leads to the open `file`. Where the system does not know, it is taken to.
static bool leadsTo(const std::string &path, int file) {
  struct stat ours, there;
  if (::fstat(file, &ours) != 0)
    return errno != ESTALE;
  if (::lstat(path.c_str(), &there) != 0)
    return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/// `process 123 on 'host'`, which the file says.
static std::string thisProcess() {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on '{}'", ::getpid(), host.data());
}

static std::string ownerOf(int file) {
  std::array<char, 512> text = {};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "another process"; // it is about to say
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
    if (error != EEXIST && error != ENOENT) { // another has made it, or removed its parent
      errno = error;
      fail("make folder", missing.back());
    }
  }
}

/// False when the folder or the file went away meanwhile.
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
    const std::string owner = ownerOf(opened);
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
  if (::ftruncate(file, 0) != 0) // at its beginning: nothing was read or written yet
    fail("write", path);
  if (const int error = writeAll(file, owner.data(), std::ssize(owner))) {
    errno = error;
    fail("write", path);
  }
  return true;
}

} // namespace kiln

// Resolves a folder's path by handles, and uses the folder by its handle.

#include "runtime/PrivateFolder.h"

#include "dialect/dsl/Types.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <limits.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace kiln {

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept {
  std::swap(number, other.number);
  return *this;
}

Descriptor::~Descriptor() {
  if (number >= 0)
    ::close(number);
}

int Descriptor::release() { return std::exchange(number, -1); }

bool Descriptor::readAll(void *to, size_t bytes) const {
  for (char *next = static_cast<char *>(to); bytes;) {
    const ssize_t got = ::read(number, next, bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool Descriptor::writeAll(std::string_view from) const {
  while (!from.empty()) {
    const ssize_t put = ::write(number, from.data(), from.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put == 0)
      errno = EIO;
    if (put <= 0)
      return false;
    from.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

// --- Path resolution -------------------------------------------------------------------------------------------------

/// Symbolic links that are followed before they count as a cycle.
static constexpr int maxLinks = 40;

[[noreturn]] static void refuse(const std::string &why) { throw Error(why, Fault::device); }

[[noreturn]] static void refuseFor(int failure, const std::string &path) {
  refuse(fmt::format("'{}': {}", path, std::strerror(failure)));
}

static struct stat statusOf(int descriptor, const std::string &path) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    refuseFor(errno, path);
  return status;
}

static bool belongsToOthers(const struct stat &status) { return status.st_uid != 0 && status.st_uid != ::geteuid(); }

namespace {
/// A path that is being resolved: the remaining names, and the folder in which the next one is looked up.
class Walk {
public:
  explicit Walk(const std::string &path) {
    std::error_code failure;
    const fs::path absolute = fs::absolute(path, failure);
    if (failure)
      refuse(failure.message());
    restart();
    prepend(absolute);
  }

  /// Resolves all names except the last one, which it returns; parent() is its folder.
  std::string toLast() {
    for (;;) {
      checkParent();
      std::string name = std::move(rest.back());
      rest.pop_back();
      if (rest.empty())
        return name;
      step(name);
    }
  }
  int parent() const { return folder.get(); }

private:
  void restart() {
    reached = "/";
    folder = Descriptor(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder)
      refuseFor(errno, reached);
  }

  void prepend(const fs::path &path) {
    std::vector<std::string> names;
    for (const fs::path &name : path.relative_path())
      if (!name.empty() && name != ".")
        names.push_back(name);
    if (names.empty() && rest.empty())
      names.emplace_back("."); // the root
    rest.insert(rest.end(), names.rbegin(), names.rend());
  }

  void checkParent() const {
    const struct stat status = statusOf(folder.get(), reached);
    if (belongsToOthers(status))
      refuse(fmt::format("'{}' above it belongs to another user", reached));
    if ((status.st_mode & 022) != 0 && (status.st_mode & S_ISVTX) == 0)
      refuse(fmt::format("others may write to '{}' above it (chmod go-w closes it)", reached));
  }

  /// Resolves one name: enters the folder, creating it if missing, or follows a link.
  void step(const std::string &name) {
    const std::string path = (fs::path(reached) / name).string();
    Descriptor next = openOrMake(name, path);
    const struct stat status = statusOf(next.get(), path);
    if (S_ISLNK(status.st_mode)) {
      if (belongsToOthers(status))
        refuse(fmt::format("'{}' above it belongs to another user", path));
      if (++links > maxLinks)
        refuseFor(ELOOP, path);
      char target[PATH_MAX];
      const ssize_t length = ::readlinkat(next.get(), "", target, sizeof target);
      if (length <= 0)
        refuseFor(length < 0 ? errno : ENOENT, path);
      const fs::path link(std::string(target, length));
      if (link.is_absolute())
        restart();
      prepend(link);
      return;
    }
    if (!S_ISDIR(status.st_mode))
      refuseFor(ENOTDIR, path);
    folder = std::move(next);
    reached = path;
  }

  Descriptor openOrMake(const std::string &name, const std::string &path) const;

  Descriptor folder;
  std::string reached;
  std::vector<std::string> rest; // last first
  int links = 0;
};
} // namespace

/// Creates the folder, if missing, for this user only. The umask is overridden, because it may clear the user's bits.
static void make(int parent, const std::string &name, const std::string &path) {
  if (::mkdirat(parent, name.c_str(), 0700) == 0)
    ::fchmodat(parent, name.c_str(), 0700, 0);
  else if (errno != EEXIST)
    refuseFor(errno, path);
}

Descriptor Walk::openOrMake(const std::string &name, const std::string &path) const {
  constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  Descriptor next(::openat(folder.get(), name.c_str(), flags));
  if (!next && errno == ENOENT) {
    make(folder.get(), name, path);
    next = Descriptor(::openat(folder.get(), name.c_str(), flags));
  }
  if (!next)
    refuseFor(errno, path);
  return next;
}

// --- The folder ------------------------------------------------------------------------------------------------------

PrivateFolder::PrivateFolder(const std::string &path) {
  Walk walk(path);
  const std::string name = walk.toLast();
  make(walk.parent(), name, path);
  folder = Descriptor(::openat(walk.parent(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder)
    refuse(errno == ENOTDIR || errno == ELOOP ? "it is not a folder" : std::strerror(errno));
  const struct stat status = statusOf(folder.get(), path);
  if (status.st_uid != ::geteuid())
    refuse("it belongs to another user");
  if ((status.st_mode & 022) != 0)
    refuse("others may write to it (chmod 700 makes it private)");
  device = status.st_dev;
  inode = status.st_ino;
}

PrivateFolder::~PrivateFolder() {
  if (!isOpen())
    folder.release(); // it was closed elsewhere, and the descriptor may belong to another file now
}

bool PrivateFolder::isOpen() const {
  struct stat status;
  if (::fstat(folder.get(), &status) == 0 && status.st_dev == device && status.st_ino == inode)
    return true;
  errno = EBADF;
  return false;
}

Descriptor PrivateFolder::open(const std::string &name, int flags) const {
  if (!isOpen())
    return Descriptor();
  Descriptor file(::openat(folder.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file && (flags & O_CREAT) != 0)
    ::fchmod(file.get(), 0600); // the umask may have cleared the user's bits
  return file;
}

bool PrivateFolder::rename(const std::string &from, const std::string &to) const {
  return isOpen() && ::renameat(folder.get(), from.c_str(), folder.get(), to.c_str()) == 0;
}

bool PrivateFolder::remove(const std::string &name) const {
  return isOpen() && ::unlinkat(folder.get(), name.c_str(), 0) == 0;
}

std::vector<PrivateFolder::Entry> PrivateFolder::files() const {
  std::vector<Entry> found;
  Descriptor again = open(".", O_RDONLY | O_DIRECTORY); // a read position of its own
  if (!again)
    return found;
  const std::unique_ptr<DIR, int (*)(DIR *)> list(::fdopendir(again.get()), ::closedir);
  if (!list)
    return found;
  again.release();
  while (const dirent *entry = ::readdir(list.get())) {
    struct stat status;
    if (::fstatat(folder.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid())
      found.push_back({entry->d_name, status.st_size, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec}});
  }
  return found;
}

} // namespace kiln

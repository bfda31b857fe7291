// An open folder into which only its owner can have put files.
//
// Its path is resolved from the root, one name at a time, each relative to the folder opened before. A user who may
// change names in a folder on the way could replace the rest of the path. So each of these folders must belong to this
// user or to root. It must also be closed to writes of others, or be sticky, as /tmp is, which lets others only add
// names. Symbolic links on the way are resolved by these rules; the last name must be the folder itself.
//
// Afterwards only the descriptor is used. Renaming the folder or changing the working directory has no effect.

#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cstdint>
#include <sys/types.h>

namespace kiln {

/// A file descriptor that closes itself; negative means none.
class Descriptor {
public:
  explicit Descriptor(int number = -1) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept;
  ~Descriptor();
  int get() const { return number; }
  int release();
  explicit operator bool() const { return number >= 0; }
  /// Reads exactly `bytes` bytes, or writes everything; false, with errno, on failure.
  bool readAll(void *to, size_t bytes) const;
  bool writeAll(std::string_view from) const;

private:
  int number;
};

class PrivateFolder {
public:
  /// Opens the folder at `path`. Missing folders are created for this user alone, whatever the umask. Throws Error
  /// (device) that names the problem with the folder or with one above it.
  explicit PrivateFolder(const std::string &path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder &) = delete;

  /// Like open(2) with close-on-exec, for a name in the folder that is not a symbolic link. A new file is open to this
  /// user alone. Returns no descriptor, with errno, on failure.
  Descriptor open(const std::string &name, int flags) const;
  /// Like rename(2) and unlink(2) within the folder; false, with errno, on failure.
  bool rename(const std::string &from, const std::string &to) const;
  bool remove(const std::string &name) const;

  struct Entry {
    std::string name;
    int64_t bytes;
    std::pair<time_t, long> modified; // seconds and nanoseconds since 1970
  };
  /// The regular files that belong to this user, in no order. Files that cannot be examined are skipped.
  std::vector<Entry> files() const;

private:
  /// Whether the descriptor is still the folder; a program may close descriptors that it does not know.
  bool isOpen() const;

  Descriptor folder;
  dev_t device = 0;
  ino_t inode = 0;
};

} // namespace kiln

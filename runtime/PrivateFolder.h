// A folder that nobody but its owner can have put a file into, held open.
//
// Its path is walked from the root, one name at a time, each looked up in the folder that the last one opened. Whoever
// may change the names of a folder on the way could put another in this one's place: so each must belong to this user
// or to root and be closed to the writes of others, or be sticky, as /tmp is, when others can only add names. Symbolic
// links on the way are followed as such names; the last name must be the folder itself. From then on the descriptor is
// all that is used: renaming the folder or changing the working directory makes no difference.

#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <cstdint>
#include <sys/types.h>

namespace kiln {

/// A file descriptor that closes itself; negative holds none.
class Descriptor {
public:
  explicit Descriptor(int number = -1) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept;
  ~Descriptor();
  int get() const { return number; }
  int release();
  explicit operator bool() const { return number >= 0; }

private:
  int number;
};

class PrivateFolder {
public:
  /// Opens the folder at `path`. What is missing of it is made, open to this user alone whatever the umask. Throws
  /// Error (device) that says what is wrong with the folder, or with one above it.
  explicit PrivateFolder(const std::string &path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder &) = delete;

  /// As open(2), closed on exec, for a name in the folder that is no symbolic link; none, with errno, when it fails. A
  /// file that is made is open to this user alone.
  Descriptor open(const std::string &name, int flags) const;
  /// As rename(2) and unlink(2) within the folder; false, with errno, when it fails.
  bool rename(const std::string &from, const std::string &to) const;
  bool remove(const std::string &name) const;

  struct Entry {
    std::string name;
    int64_t bytes;
    std::pair<time_t, long> modified; // seconds and nanoseconds since 1970
  };
  /// The regular files that belong to this user, in no order. Those that cannot be looked at are left out.
  std::vector<Entry> files() const;

private:
  /// Whether the descriptor is still the folder: a program may close descriptors that it does not know.
  bool isOpen() const;

  Descriptor folder;
  dev_t device = 0;
  ino_t inode = 0;
};

} // namespace kiln

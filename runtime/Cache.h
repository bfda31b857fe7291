// The compile cache on disk, so that a second start of a program compiles nothing.
//
// Each entry is a file, kiln-KEY.kernel. It is written under a temporary name in that folder and renamed. So a reader
// sees a complete entry or none, even if a process dies. An entry is a record (Record.h); damaged ones and those of
// another version are dropped.
//
// Entries are executable code, so they and their folder must belong to the user, and others must not be able to write
// them (PrivateFolder.h). Other files in the folder are neither touched nor counted.

#pragma once

#include "runtime/PrivateFolder.h"
#include "runtime/Record.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// The version of the compiler in cache keys: a hash of the sources that determine the code of a traced module.
extern const char *const compilerIdentity;

/// The cache in one folder. Safe for any number of threads and processes. A problem with the folder is reported once on
/// stderr, and the program runs without the cache. If only writing fails, such as on a full disk, existing entries are
/// used.
class DiskCache {
public:
  /// Creates the folder `path` and its parents if they are missing; an empty path turns the cache off. `capacity` is
  /// the size limit of all entries in bytes.
  DiskCache(std::string path, int64_t capacity);
  /// KILN_CACHE, else XDG_CACHE_HOME/kiln if that is absolute, else ~/.cache/kiln. The capacity is KILN_CACHE_BYTES,
  /// else 256 MiB.
  static DiskCache fromEnvironment();

  /// The content stored under `key` (from digestOf); nothing if it is missing or damaged.
  std::optional<std::vector<char>> load(const std::string &key);
  /// Stores an entry. After every capacity / 32 stored bytes it lists the folder and removes the least recently used
  /// entries down to the capacity. In between the folder may exceed the capacity by a thirty-second.
  void store(const std::string &key, const std::vector<char> &content);

private:
  void sayNotKept(const std::string &why);
  Descriptor openAside(const std::string &key, std::string &name) const;
  void write(const std::string &key, const std::vector<char> &content);
  void trim(const std::string &keep);

  const std::string path;
  const int64_t capacity;
  std::optional<PrivateFolder> folder; // none if the cache is off
  std::atomic<bool> writable;
  /// Bytes stored since the last listing. It begins at a random number, so that many processes that store little list
  /// the folder as often as one that stores much.
  std::atomic<int64_t> unseen;
};

} // namespace kiln

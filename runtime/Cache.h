// Compiled objects on disk, so that a program's second start compiles nothing.
//
// One file an entry, kiln-KEY.kernel. It is written under another name in the same folder and renamed, so that a reader
// sees all of an entry or none, whichever process dies. It carries its key, length and a hash of its content; an entry
// that does not agree with them is dropped. Entries are executable code: they and their folder must belong to the
// user and be closed to the writes of others (PrivateFolder.h). Other files in the folder are neither touched nor
// counted.

#pragma once

#include "runtime/PrivateFolder.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// Tells this compiler's objects from another's: a hash of the sources that decide what a traced module becomes.
extern const char *const compilerIdentity;

/// BLAKE3 as 64 hexadecimal digits.
std::string digestOf(std::string_view text);

/// The cache of a folder. From any thread and any number of processes. What goes wrong with the folder is said once on
/// stderr and the cache is done without; when only writing goes wrong, on a full disk say, what is there still serves.
class DiskCache {
public:
  /// The folder `path` is made, with its parents, when it is not there; empty turns the cache off. `capacity` is in
  /// bytes, of entries.
  DiskCache(std::string path, int64_t capacity);
  /// KILN_CACHE, else XDG_CACHE_HOME/kiln, else ~/.cache/kiln; KILN_CACHE_BYTES, else 256 MiB. XDG_CACHE_HOME counts
  /// when it is absolute, as its specification says.
  static DiskCache fromEnvironment();

  /// The content stored under `key` (from digestOf), if it is there and whole.
  std::optional<std::vector<char>> load(const std::string &key);
  /// Stores it. After every capacity / 32 bytes stored, the folder is listed, and the entries used longest ago are
  /// removed until it is within its capacity: it may exceed it by a thirty-second in between.
  void store(const std::string &key, const std::vector<char> &content);

private:
  void sayNotKept(const std::string &why);
  Descriptor openAside(const std::string &key, std::string &name) const;
  void write(const std::string &key, const std::vector<char> &content);
  void trim(const std::string &keep);

  const std::string path;
  const int64_t capacity;
  std::optional<PrivateFolder> folder; // none when the cache is off
  std::atomic<bool> writable;
  /// Bytes stored since the folder was last listed. It begins at a random number: so many processes that store little
  /// list the folder as often as one that stores much.
  std::atomic<int64_t> unseen;
};

} // namespace kiln

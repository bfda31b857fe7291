// Files: atomic writes, to a temporary name, synced and renamed; and reading, also of compressed files. Every error
// names the file and the system's reason.

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A range of bytes in memory.
struct Bytes {
  const void *data;
  int64_t size;
};

/// Writes `size` bytes to an open file, with retries after interruptions. Returns 0 or the system's error number.
int writeAll(int file, const char *data, int64_t size);
/// Writes `parts` in order to a new file `path` and syncs it. Throws Error (device), and removes the file, if the disk
/// is full or the folder is not writable.
void writeSynced(const std::string &path, const std::vector<Bytes> &parts);
/// Writes these over the first bytes of a file, and syncs it.
void overwriteSynced(const std::string &path, const Bytes &bytes);
/// As above, for parts that are computed one at a time: `part(i)`, for i from 0 to below `count`, is valid until the
/// next call.
void writeSynced(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part);
/// Writes to a temporary file, then renames it over `path`.
void replaceFile(const std::string &path, const std::string &text);
void replaceFile(const std::string &path, const std::vector<Bytes> &parts);
/// As above, for parts that are produced one after the other, as in writeSynced.
void replaceFile(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part);
/// Makes a folder's entries durable.
void syncFolder(const std::string &path);

/// A file that is appended to, and created if it is missing. Its functions throw Error (device).
class AppendedFile {
public:
  explicit AppendedFile(const std::string &path);
  ~AppendedFile();
  AppendedFile(const AppendedFile &) = delete;
  void write(std::string_view bytes);
  /// Whether the path was removed, so that further writes are lost.
  bool isRemoved() const;

private:
  const std::string path;
  const int file;
};

/// Reads a regular file. Throws Error if it is missing, unreadable, or longer than `most` bytes.
std::string readFile(const std::string &path, int64_t most = std::numeric_limits<int64_t>::max());

/// Calls `take` for each line of a text, without its end, which may be CR and LF.
void forLines(std::string_view text, const std::function<void(std::string_view line)> &take);
/// FNV-1a of bytes, from the hash of those before them.
inline uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325) {
  for (const char byte : bytes)
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

//===-- Compressed files ----------------------------------------------------------------------------------------===//
// Reads text files that may be compressed.

/// Reads a regular file, and unpacks it if its name ends in .gz or .bz2, also with several members. Throws Error if it
/// is missing, damaged or not such a file, or has more than `most` bytes unpacked; it unpacks no more than these.
std::string readUnpacked(const std::string &path, int64_t most = std::numeric_limits<int64_t>::max());

} // namespace kiln

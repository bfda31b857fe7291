// Files that the user names: a regular file for reading, such as a text, a model or an array; results; checksums.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace kiln {

/// The kind of a file that is not regular: `a folder`, `a pipe`, `a socket` or `a device`.
const char *kindOf(mode_t mode);

/// A file for reading. Its content stays that of the opened file, even if another process removes or replaces it.
class InputFile {
public:
  /// Throws Error (user) if there is no such file, or if it is a folder, a pipe or a device. It never waits for one.
  /// Throws Error (device) if the file cannot be opened.
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;

  /// The size in bytes when it was opened.
  int64_t size() const { return bytes; }
  /// Copies `count` bytes from `offset` on. Throws Error (device) if they cannot be read or are beyond the end.
  void read(int64_t offset, void *to, int64_t count) const;

private:
  const std::string path;
  const int file;
  int64_t bytes = 0;
};

/// Writes to a temporary file and renames it, or writes to standard output for `-`. A file that is not regular, such as
/// /dev/null, is written directly; a symbolic link stays a link. Throws Error (device) on failure.
void writeOutput(const std::string &path, const std::string &content);

/// Throws Error unless `path` is a regular file or does not exist. For results that need a file, before they are
/// computed.
void expectFile(const std::string &path);

/// Throws Error unless writeOutput() can write a file at `path`, before its content is computed.
void expectWritable(const std::string &path);

/// A fast hash that detects damage: XXH3 (64 bits, seed 0) of `bytes` as 16 hexadecimal digits, as `xxhsum -H3` prints
/// it. It does not resist attackers.
std::string checksum(std::string_view bytes);

} // namespace kiln

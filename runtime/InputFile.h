// A regular file for reading: a text, a model, an array. Its content stays that of the opened file, even if another
// process removes or replaces it.

#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace kiln {

/// The kind of a file that is not regular: `a folder`, `a pipe`, `a socket` or `a device`.
const char *kindOf(mode_t mode);

class InputFile {
public:
  /// Throws Error (user) if there is no such file, or if it is a folder, a pipe or a device; it does not wait for
  /// those. Throws Error (device) if it cannot be opened.
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

} // namespace kiln

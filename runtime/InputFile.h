// A regular file that is read: a text, a model, an array. It stays what it was when it was opened, though another
// process remove or replace it.

#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace kiln {

/// `a folder`, `a pipe`, `a socket` or `a device`: what a file of `mode` is that is no regular one.
const char *kindOf(mode_t mode);

class InputFile {
public:
  /// Throws Error: (user) when there is no such file, or it is none but a folder, a pipe or a device, which is not
  /// waited for; (device) when it cannot be opened.
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;

  /// Bytes that it had when it was opened.
  int64_t size() const { return bytes; }
  /// Copies `count` bytes from `offset` on. Throws Error (device) when they cannot be read or there are not so many.
  void read(int64_t offset, void *to, int64_t count) const;

private:
  const std::string path;
  const int file;
  int64_t bytes = 0;
};

} // namespace kiln

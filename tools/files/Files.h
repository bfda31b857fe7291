// Reads the input files of programs. Also a temporary folder, which lives as long as a program or test uses it.

#pragma once

#include "dialect/dsl/Types.h"
#include "lowering/TemporaryPath.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace kiln::tools {

/// The maximum size of a file that programs read.
inline constexpr int64_t mostInputBytes = int64_t{64} << 20;

/// The content of a file, or of standard input for `-`. Throws Error (device) if it cannot be read, for example a pipe
/// without a writer. Throws Error (user) if it is larger than `most` bytes, for example an endless file.
std::string readInput(const std::string &path, int64_t most = mostInputBytes);

/// Throws Error (device) unless there is a regular file at `path` of at most `most` bytes, for another program to read.
void expectInput(const std::string &path, int64_t most = mostInputBytes);

/// A new folder below the one for temporary files, `PREFIX-` and six letters, that goes with all its content.
class TemporaryFolder {
public:
  /// Throws Error (device) when it cannot be made.
  explicit TemporaryFolder(const std::string &prefix = "kiln")
      : path(temporaryPath() + "/" + prefix + "-XXXXXX") { // mkdtemp fills in the end
    if (!::mkdtemp(path.data()))
      throw Error("expected a folder for temporary files, which TMPDIR names, but could not write to '" +
                      temporaryPath() + "': " + std::strerror(errno),
                  Fault::device);
  }
  ~TemporaryFolder() {
    try {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    } catch (...) { // without memory it stays
    }
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// The path of the file `name` in it.
  std::string operator/(const std::string &name) const { return path + "/" + name; }

  std::string path;
};

} // namespace kiln::tools

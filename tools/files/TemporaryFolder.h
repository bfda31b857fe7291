// A folder for what a program or a test needs only while it runs.

#pragma once

#include "dialect/dsl/Types.h"
#include "lowering/TemporaryPath.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace kiln::tools {

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

  /// The path of what is called so in it.
  std::string operator/(const std::string &name) const { return path + "/" + name; }

  std::string path;
};

} // namespace kiln::tools

// A folder for what a program or a test needs only while it runs.

#pragma once

#include "dialect/dsl/Types.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace kiln::tools {

/// A new folder below the system's temporary one, `PREFIX-` and six letters, that goes with all its content.
class TemporaryFolder {
public:
  /// Throws Error (device) when it cannot be made.
  explicit TemporaryFolder(const std::string &prefix = "kiln")
      : path((std::filesystem::temp_directory_path() / (prefix + "-XXXXXX")).string()) { // mkdtemp fills in the end
    if (!::mkdtemp(path.data()))
      throw Error("expected to make a folder '" + path + "', but could not: " + std::strerror(errno), Fault::device);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// The path of what is called so in it.
  std::string operator/(const std::string &name) const { return path + "/" + name; }

  std::string path;
};

} // namespace kiln::tools

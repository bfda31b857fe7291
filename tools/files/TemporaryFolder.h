// A folder for what a program needs only while it runs.

#pragma once

#include <filesystem>
#include <string>

namespace kiln::tools {

/// A new folder below the system's temporary one, `PREFIX-` and six letters, that goes with all its content.
class TemporaryFolder {
public:
  /// Throws Error (device) when it cannot be made.
  explicit TemporaryFolder(const std::string &prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::filesystem::path &path() const { return folder; }

private:
  std::filesystem::path folder;
};

} // namespace kiln::tools

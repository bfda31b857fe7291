// A folder below the system's temporary one that is gone when the test ends.

#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

class TemporaryFolder {
public:
  TemporaryFolder() {
    path = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string(); // mkdtemp fills in the end
    if (!mkdtemp(path.data()))
      throw std::filesystem::filesystem_error("expected to make a folder, but could not", path,
                                              std::error_code(errno, std::generic_category()));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;

  std::string operator/(const std::string &name) const { return path + "/" + name; }

  std::string path;
};

inline void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

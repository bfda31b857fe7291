// A folder that is removed when the test ends, and texts in files.

#pragma once

#include "tools/files/Files.h"

#include <fstream>
#include <iterator>

using kiln::tools::TemporaryFolder;

inline void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Reading and splitting a text file.

#include "models/data/text.h"
#include "dialect/dsl/Types.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace kiln {

static std::vector<uint8_t> readBytes(const std::string &path) {
  const std::filesystem::file_status status = std::filesystem::status(path);
  if (!std::filesystem::exists(status))
    throw Error(fmt::format("expected a text file, but '{}' does not exist", path));
  if (std::filesystem::is_directory(status))
    throw Error(fmt::format("expected a text file, but '{}' is a folder", path));
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw Error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)), Fault::device);
  return {std::istreambuf_iterator<char>(in), {}};
}

Text readText(const std::string &path, int64_t context) {
  const std::vector<uint8_t> bytes = readBytes(path);
  if (bytes.empty())
    throw Error(fmt::format("expected text in '{}', but the file is empty", path));
  const int64_t size = bytes.size(), validation = size / 10, least = 10 * (context + 1);
  if (validation < context + 1)
    throw Error(
        fmt::format("expected at least {} bytes in '{}' for a context of {} (the last tenth validates), but got {}",
                    least, path, context, size));
  Text text;
  text.train.assign(bytes.begin(), bytes.end() - validation);
  text.validation.assign(bytes.end() - validation, bytes.end());
  return text;
}

} // namespace kiln

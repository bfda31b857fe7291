// A text file as bytes, one token a byte: the first nine tenths to train on, the last tenth to validate on.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

struct Text {
  std::vector<uint8_t> train, validation;
};

/// Reads `path`. Throws Error when it is missing, no regular file, empty, or when either part is too short for one
/// sequence of `context` bytes and the byte after it.
Text readText(const std::string &path, int64_t context);

} // namespace kiln

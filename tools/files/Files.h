// The files that kilnc and kiln-opt are told to read.

#pragma once

#include <cstdint>
#include <string>

namespace kiln::tools {

/// All of a file, or of standard input for `-`. Throws Error: device when it cannot be read, user when it is larger
/// than `most` bytes, as an endless one is.
std::string readInput(const std::string &path, int64_t most);

} // namespace kiln::tools

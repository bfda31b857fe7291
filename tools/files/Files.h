// The files that kilnc and kiln-opt are told to read.

#pragma once

#include <cstdint>
#include <string>

namespace kiln::tools {

/// The maximum size of a file that programs read.
inline constexpr int64_t mostInputBytes = int64_t{64} << 20;

/// All of a file, or of standard input for `-`. Throws Error: device when it cannot be read, as a pipe that nobody
/// writes to, user when it is larger than `most` bytes, as an endless one is.
std::string readInput(const std::string &path, int64_t most = mostInputBytes);

/// Throws Error (device) unless there is a regular file at `path` of at most `most` bytes, for another program to read.
void expectInput(const std::string &path, int64_t most = mostInputBytes);

} // namespace kiln::tools

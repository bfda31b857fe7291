// The files that kilnc and kiln-opt are told to read and to write.

#pragma once

#include <cstdint>
#include <string>

namespace kiln::tools {

/// What programs read of any file at most.
inline constexpr int64_t mostInputBytes = int64_t{64} << 20;

/// All of a file, or of standard input for `-`. Throws Error: device when it cannot be read, as a pipe that nobody
/// writes to, user when it is larger than `most` bytes, as an endless one is.
std::string readInput(const std::string &path, int64_t most = mostInputBytes);

/// Throws Error (device) unless there is a regular file at `path` of at most `most` bytes, for another program to read.
void expectFile(const std::string &path, int64_t most = mostInputBytes);

/// Writes to a file, aside first and renamed when whole, or to standard output for `-`. A file that is no regular one,
/// such as /dev/null, is written to as it is; a symbolic link to a file stays one. Throws Error (device) when it
/// cannot.
void writeOutput(const std::string &path, const std::string &content);

} // namespace kiln::tools

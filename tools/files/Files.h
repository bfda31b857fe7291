// Reads the input files of kilnc and kiln-opt.

#pragma once

#include <cstdint>
#include <string>

namespace kiln::tools {

/// The maximum size of a file that programs read.
inline constexpr int64_t mostInputBytes = int64_t{64} << 20;

/// The content of a file, or of standard input for `-`. Throws Error (device) if it cannot be read, for example a pipe
/// without a writer, and Error (user) if it is larger than `most` bytes, for example an endless file.
std::string readInput(const std::string &path, int64_t most = mostInputBytes);

/// Throws Error (device) unless there is a regular file at `path` of at most `most` bytes, for another program to read.
void expectInput(const std::string &path, int64_t most = mostInputBytes);

} // namespace kiln::tools

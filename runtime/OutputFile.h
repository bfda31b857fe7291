// A file that a program is told to write its result to.

#pragma once

#include <string>

namespace kiln {

/// Writes to a file, aside first and renamed when whole, or to standard output for `-`. A file that is no regular one,
/// such as /dev/null, is written to as it is; a symbolic link to a file stays one. Throws Error (device) when it
/// cannot.
void writeOutput(const std::string &path, const std::string &content);

/// Throws Error unless `path` is a regular file or nothing yet: for results that only a file can hold, before they are
/// computed.
void expectFile(const std::string &path);

} // namespace kiln

// Writes a result to a file that the user names.

#pragma once

#include <string>

namespace kiln {

/// Writes to a temporary file and renames it, or writes to standard output for `-`. A file that is not regular, such as
/// /dev/null, is written directly; a symbolic link stays a link. Throws Error (device) on failure.
void writeOutput(const std::string &path, const std::string &content);

/// Throws Error unless `path` is a regular file or does not exist. For results that need a file, before they are
/// computed.
void expectFile(const std::string &path);

/// Throws Error unless writeOutput() can write a file at `path`, before its content is computed.
void expectWritable(const std::string &path);

} // namespace kiln

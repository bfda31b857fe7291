// Reads text files that may be compressed.

#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace kiln {

/// Reads a regular file, and unpacks it if its name ends in .gz or .bz2, also with several members. Throws Error if it
/// is missing, damaged or not such a file, or has more than `most` bytes unpacked; it unpacks no more than these.
std::string readUnpacked(const std::string &path, int64_t most = std::numeric_limits<int64_t>::max());

} // namespace kiln

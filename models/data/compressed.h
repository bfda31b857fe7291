// Texts in files that may be compressed.

#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace kiln {

/// All of a regular file, unpacked where its name ends in .gz or .bz2, of several parts too. Throws Error when there is
/// none, it is torn or no such file, or it has more than `most` bytes once it is unpacked, of which no more are made.
std::string readUnpacked(const std::string &path, int64_t most = std::numeric_limits<int64_t>::max());

} // namespace kiln

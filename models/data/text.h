// A text as bytes, one token each: the first nine tenths are for training, the last tenth is the validation set.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

struct Text {
  std::vector<uint8_t> train, validation;
};

/// The maximum size of a text: a quarter of the machine's memory, or of the limit of its control group if that is
/// lower. The argument is the file of that limit.
int64_t mostTextBytes(const std::string &limit = "/sys/fs/cgroup/memory.max");

/// Reads `path`, a regular file, or a pipe until its end. Throws Error as readText does, and for JSON lines and
/// compressed files.
std::vector<uint8_t> readWholeText(const std::string &path, int64_t most = mostTextBytes());
/// Reads `path`, a regular file, or a pipe until its end. Throws Error if it is missing, not a file (a folder, a
/// device), empty, or longer than `most` bytes, of which it reads no more. It also throws if either part is too short
/// for one sequence of `context` bytes and the byte after it.
Text readText(const std::string &path, int64_t context, int64_t most = mostTextBytes());

} // namespace kiln

// Atomic files: written to a temporary name, synced, renamed. Every error names the file and the system's reason.

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace kiln {

/// A range of bytes in memory.
struct Bytes {
  const void *data;
  int64_t size;
};

/// Writes `size` bytes to an open file, with retries after interruptions. Returns 0 or the system's error number.
int writeAll(int file, const char *data, int64_t size);
/// Writes `parts` in order to a new file `path` and syncs it. Throws Error (device), and removes the file, if the disk
/// is full or the folder is not writable.
void writeSynced(const std::string &path, const std::vector<Bytes> &parts);
/// Writes these over the first bytes of a file, and syncs it.
void overwriteSynced(const std::string &path, const Bytes &bytes);
/// As above, for parts that are computed one at a time: `part(i)`, for i from 0 to below `count`, is valid until the
/// next call.
void writeSynced(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part);
/// Writes to a temporary file, then renames it over `path`.
void replaceFile(const std::string &path, const std::string &text);
/// As above, for parts that are produced one after the other, as in writeSynced.
void replaceFile(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part);
/// Makes a folder's entries durable.
void syncFolder(const std::string &path);
/// Reads a regular file. Throws Error if it is missing, unreadable, or longer than `most` bytes.
std::string readFile(const std::string &path, int64_t most = std::numeric_limits<int64_t>::max());

} // namespace kiln

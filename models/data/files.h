// Files that are whole or not there: written aside, synced, renamed. Every error names the file and what the system
// said.

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace kiln {

/// A run of bytes in memory.
struct Bytes {
  const void *data;
  int64_t size;
};

/// Writes `size` bytes to an open file, however often that is interrupted; 0, or what the system said.
int writeAll(int file, const char *data, int64_t size);
/// Writes `parts` one after the other to a new file `path` and syncs it. Throws Error (device), with the file removed,
/// when the disk is full or the folder unwritable.
void writeSynced(const std::string &path, const std::vector<Bytes> &parts);
/// Writes these over the first bytes of a file, and syncs it.
void overwriteSynced(const std::string &path, const Bytes &bytes);
/// The same for parts that are made one after the other: `part(i)`, from 0 to below `count`, holds until the next is
/// asked for.
void writeSynced(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part);
/// Writes `path` aside, then renames it over the old file.
void replaceFile(const std::string &path, const std::string &text);
/// The same of parts that are made one after the other, as writeSynced takes them.
void replaceFile(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part);
/// Makes a folder's entries durable.
void syncFolder(const std::string &path);
/// All of a regular file; throws Error when there is none, it cannot be read, or it has more than `most` bytes.
std::string readFile(const std::string &path, int64_t most = std::numeric_limits<int64_t>::max());

} // namespace kiln

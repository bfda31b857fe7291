// How much memory a program may allocate. Linux promises more than it has and kills the program that uses it.

#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace kiln {

/// The number after `name` in a file; if `name` is empty, the first one. -1 without such a number.
inline int64_t numberIn(const std::string &path, const std::string &name) {
  std::ifstream file(path);
  int64_t number = -1;
  for (std::string word; name.empty() || file >> word;)
    if (name.empty() || word == name)
      return file >> number ? number : -1;
  return -1;
}

/// The bytes that a control group may still allocate, from its files in `folder`: memory.max of version 2, or
/// memory.limit_in_bytes of version 1. File caches count as available. The largest number if it has no limit.
inline int64_t availableInGroup(const std::string &folder) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  int64_t limit = numberIn(folder + "/memory.max", ""), used = numberIn(folder + "/memory.current", ""),
          cached = numberIn(folder + "/memory.stat", "inactive_file");
  if (limit < 0) {
    limit = numberIn(folder + "/memory.limit_in_bytes", "");
    used = numberIn(folder + "/memory.usage_in_bytes", "");
    cached = numberIn(folder + "/memory.stat", "total_inactive_file");
  }
  return limit < 0 || used < 0 ? most : std::max<int64_t>(0, limit - used + std::max<int64_t>(0, cached));
}

/// As above, for the control group of this process and all around it. `root` stands for the root of the file system.
inline int64_t availableInGroups(const std::string &root = "") {
  int64_t least = std::numeric_limits<int64_t>::max();
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) { // `0::/user.slice` of version 2, `4:memory:/user.slice` of 1
    const size_t name = line.find(':') + 1, path = line.find(':', name) + 1;
    const std::string controller = line.substr(name, path - 1 - name);
    if (name == 0 || path == 0 || (!controller.empty() && controller != "memory"))
      continue;
    const std::string top = root + (controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    for (std::string folder = line.substr(path); !folder.empty(); folder.resize(folder.rfind('/')))
      least = std::min(least, availableInGroup(top + folder));
    least = std::min(least, availableInGroup(top));
  }
  return least;
}

/// Bytes available without swapping, to the system and to the control groups of this process; the largest number if the
/// system does not say.
inline int64_t availableMemory(const std::string &root = "") {
  const int64_t kibibytes = numberIn(root + "/proc/meminfo", "MemAvailable:");
  const int64_t inGroups = availableInGroups(root);
  return kibibytes < 0 ? inGroups : std::min(kibibytes << 10, inGroups);
}

/// Whether that much memory is available. Small requests are always granted.
inline bool isMemoryFor(int64_t bytes) {
  constexpr int64_t large = int64_t{1} << 28;
  return bytes < large || bytes <= availableMemory();
}

} // namespace kiln

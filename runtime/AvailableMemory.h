// How much memory a program may allocate. Linux promises more than it has and kills the program that uses it.

#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>

namespace kiln {

/// Bytes available without swapping; the largest number if the system does not say.
inline int64_t availableMemory() {
  int64_t kibibytes = std::numeric_limits<int64_t>::max() >> 10;
  if (std::FILE *const file = std::fopen("/proc/meminfo", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file))
      if (long long number = 0; std::sscanf(line, "MemAvailable: %lld", &number) == 1)
        kibibytes = number;
    std::fclose(file);
  }
  return kibibytes << 10;
}

/// Whether that much memory is available. Small requests are always granted.
inline bool isMemoryFor(int64_t bytes) {
  constexpr int64_t large = int64_t{1} << 28;
  return bytes < large || bytes <= availableMemory();
}

} // namespace kiln

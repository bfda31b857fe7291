// Logs launches, one per line.

#include "runtime/cuda/LaunchLog.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::cuda {

std::string LaunchLog::text() const {
  std::string text;
  const uint64_t shown = std::min<uint64_t>(count, last.size());
  for (uint64_t i = 1; i <= shown; ++i) {
    const Entry &entry = last[(count - i) % last.size()];
    text += fmt::format("\n  {}, {}x{}x{} programs", *entry.label, entry.grid[0], entry.grid[1], entry.grid[2]);
  }
  if (count > shown)
    text += fmt::format("\n  and {} before", count - shown);
  return text;
}

} // namespace kiln::cuda

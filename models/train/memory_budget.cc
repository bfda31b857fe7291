// Parses sizes, and reads the system's memory limits.

#include "models/train/memory_budget.h"
#include "runtime/Device.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <unistd.h>

namespace kiln {

static const std::pair<const char *, double> units[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                                        {"TiB", 0x1p40}, {"kB", 1e3},     {"MB", 1e6},
                                                        {"GB", 1e9},     {"TB", 1e12}};

MemoryBudget budgetNamed(const std::string &flag, const std::string &text) {
  if (text == "auto")
    return {};
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string unit = stop + (*stop == ' ');
  if (error == std::errc() && number > 0)
    for (const auto &[name, size] : units)
      if (unit == name && number * size <= 0x1p60)
        return {static_cast<int64_t>(std::floor(number * size))};
  throw Error(fmt::format("expected '{}' to be auto, or a number of KiB, MiB, GiB, TiB, kB, MB, GB or TB such as 6GiB, "
                          "but got '{}'",
                          flag, text));
}

std::string sizeText(int64_t bytes) {
  const double mebibytes = std::ceil(static_cast<double>(bytes) / 0x1p20);
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes)
                          : fmt::format("{:.2f} GiB", std::ceil(mebibytes / 1024 * 100) / 100);
}

int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// The number in a file; none if it has another content, as `max` in control groups.
static std::optional<int64_t> numberIn(const char *path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

int64_t availableBytes() {
  int64_t available = std::numeric_limits<int64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (word == "MemAvailable:" && file >> available)
      available *= 1024;
  const std::optional<int64_t> most = numberIn("/sys/fs/cgroup/memory.max"),
                               taken = numberIn("/sys/fs/cgroup/memory.current");
  return most && taken ? std::min(available, std::max<int64_t>(0, *most - *taken)) : available;
}

bool isHostMemory(const Device &device) { return !device.name().starts_with("cuda"); }

} // namespace kiln

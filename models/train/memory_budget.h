// The memory budget of a run, as users give it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

class Device;

/// Bytes; or `auto`: nine tenths of the machine's free memory.
struct MemoryBudget {
  std::optional<int64_t> bytes;
  bool operator==(const MemoryBudget &) const = default;
};

/// `auto`, or a number with its unit: KiB, MiB, GiB, TiB, or kB, MB, GB, TB. Throws Error, which names `flag`, for
/// another text.
MemoryBudget budgetNamed(const std::string &flag, const std::string &text);
/// `512 MiB`, `3.25 GiB`: rounded up.
std::string sizeText(int64_t bytes);

/// Resident memory of this process.
int64_t residentBytes();
/// The memory that the process could allocate in addition: the system's available memory, at most the rest of its
/// control group's limit.
int64_t availableBytes();
/// Whether the device's allocations are memory of this process.
bool isHostMemory(const Device &device);

} // namespace kiln

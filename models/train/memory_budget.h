// How much memory a run may take, as users say it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

class Device;

/// Bytes; or `auto`: nine tenths of what the machine has free.
struct MemoryBudget {
  std::optional<int64_t> bytes;
  bool operator==(const MemoryBudget &) const = default;
};

/// `auto`, or a number with its unit: KiB, MiB, GiB, TiB, or kB, MB, GB, TB. Throws Error, which names `flag`, for
/// another text.
MemoryBudget budgetNamed(const std::string &flag, const std::string &text);
/// `512 MiB`, `3.25 GiB`: rounded up.
std::string sizeText(int64_t bytes);

/// Bytes that this process has in memory now.
int64_t residentBytes();
/// Bytes that it could have beside these: what the system calls available, and what its control group leaves.
int64_t availableBytes();
/// Whether what is allocated on the device is memory of this process.
bool isHostMemory(const Device &device);

} // namespace kiln

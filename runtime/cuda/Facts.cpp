// Reads a GPU's attributes from the driver.

#include "runtime/cuda/Facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kiln::cuda {

using lowering::gpu::GpuTarget;

const GpuTarget *codeFor(int capability) {
  const GpuTarget *best = nullptr;
  for (const GpuTarget &target : lowering::gpu::gpuTargets()) {
    const bool runsOnNewer = std::isdigit(target.architecture.back());
    if (target.capability == capability || (target.capability < capability && runsOnNewer))
      if (!best || best->capability < target.capability)
        best = &target;
  }
  return best;
}

int countGpus(const Connection &connection) {
  connection.call("a GPU", connection.driver.init, 0u);
  int count = 0;
  connection.call("a number of GPUs", connection.driver.deviceGetCount, &count);
  return count;
}

Gpu readGpu(const Connection &connection, int number) {
  const Driver &driver = connection.driver;
  const int count = countGpus(connection);
  if (number >= count)
    throw Error(fmt::format("device '{}': expected a GPU number below {}, the number of GPUs of driver '{}'",
                            connection.device, count, driver.library),
                Fault::device);
  Gpu gpu;
  connection.call("a GPU", driver.deviceGet, &gpu.number, number);
  char name[256] = "";
  connection.call("a GPU's name", driver.deviceGetName, name, static_cast<int>(sizeof name), gpu.number);
  gpu.name = name;
  const auto attribute = [&](const char *what, Attribute which) {
    int value = 0;
    connection.call(what, driver.deviceGetAttribute, &value, which, gpu.number);
    return value;
  };
  gpu.capability = 10 * attribute("a compute capability", Attribute::capabilityMajor) +
                   attribute("a compute capability", Attribute::capabilityMinor);
  gpu.code = codeFor(gpu.capability);
  if (!gpu.code)
    throw Error(fmt::format("device '{}': expected a GPU of compute capability 8.0 or newer, but '{}' has {}.{}",
                            connection.device, gpu.name, gpu.capability / 10, gpu.capability % 10),
                Fault::device);
  if (!attribute("to know of memory pools", Attribute::memoryPools))
    throw Error(
        fmt::format("device '{}': expected a GPU with memory pools, but '{}' has none", connection.device, gpu.name),
        Fault::device);
  gpu.facts = {.architecture = gpu.code->capability,
               .sms = attribute("a number of SMs", Attribute::sms),
               .ctaSharedBytes = std::min<int64_t>(gpu.code->sharedBytes,
                                                   attribute("a size of shared memory", Attribute::ctaSharedBytes)),
               .smSharedBytes = attribute("a size of shared memory", Attribute::smSharedBytes),
               .registers = attribute("a number of registers", Attribute::smRegisters),
               .l2Bytes = attribute("a size of the level-2 cache", Attribute::l2Bytes)};
  return gpu;
}

} // namespace kiln::cuda

// The list of backends.

#include "lowering/Backend.h"

#include "lowering/cpu/CpuBackend.h"
#include "lowering/gpu/GpuBackend.h"

namespace kiln::lowering {

std::shared_ptr<const Backend> openBackend(const std::string &name) {
  const std::shared_ptr<const Backend> gpu = gpu::openBackend(name);
  return gpu ? gpu : cpu::openBackend(name);
}

std::vector<std::shared_ptr<const Backend>> allBackends() {
  return {cpu::openBackend("cpu"), gpu::openBackend("sm_80")};
}

} // namespace kiln::lowering

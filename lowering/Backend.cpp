// The list of backends.

#include "lowering/Backend.h"

#include "lowering/cpu/CpuBackend.h"

namespace kiln::lowering {

std::shared_ptr<const Backend> openBackend(const std::string &name) { return cpu::openBackend(name); }

std::vector<std::shared_ptr<const Backend>> allBackends() { return {cpu::openBackend("cpu")}; }

} // namespace kiln::lowering

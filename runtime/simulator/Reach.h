// Which functions of a module a kernel can reach.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::simulator {

/// The kernel, and the functions that it names, or that the variables which it names hold, and what these name: by
/// their index in the module, the kernel first.
std::vector<int> reachableFrom(const ptx::Module &module, int entry);

} // namespace kiln::simulator

// Finds the functions of a module that a kernel can reach.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::simulator {

/// The kernel, then the functions that it names directly or through initialised variables, transitively: by index in
/// the module.
std::vector<int> reachableFrom(const ptx::Module &module, int entry);

} // namespace kiln::simulator

// The parameters and results of calls, and their place in local memory.

#pragma once

#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// The bytes of each result and parameter of a function, preceded by the number of results.
std::vector<uint32_t> signatureOf(const ptx::Function &function);

} // namespace kiln::simulator

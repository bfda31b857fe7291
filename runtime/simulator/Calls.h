// What a call passes, and where it lies in local memory.

#pragma once

#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// Bytes of each result and parameter of a function, with the number of results before them.
std::vector<uint32_t> signatureOf(const ptx::Function &function);

} // namespace kiln::simulator

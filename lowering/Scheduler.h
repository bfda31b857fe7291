// Selects LLVM's instruction scheduler, for experiments. Results of kernels must not depend on it. Differences in
// register counts show how much of them is chance.

#pragma once

#include <string>

namespace kiln::lowering {

/// The scheduler that KILN_SCHEDULER names; empty without one. LLVM gets it before the first compilation, and code
/// depends on it. Throws Error (user) for an unknown name.
const std::string &chosenScheduler();

} // namespace kiln::lowering

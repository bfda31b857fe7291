// Which of LLVM's schedulers orders the instructions of a block, where somebody asks for one: what a kernel computes
// must not depend on it, and what registers it takes tells how much of that is chance.

#pragma once

#include <string>

namespace kiln::lowering {

/// The scheduler that KILN_SCHEDULER names, which LLVM is told of before anything is compiled; empty when it names
/// none. Code depends on it. Throws Error (user) for a name that is none.
const std::string &chosenScheduler();

} // namespace kiln::lowering

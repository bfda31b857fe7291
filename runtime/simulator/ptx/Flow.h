// The control flow of a function: where the two sides of a branch meet again.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::ptx {

/// For each instruction that is a branch, the first instruction that every path from it to the function's end passes
/// (its immediate post-dominator's); −1 where there is none but the end, and for all other instructions.
std::vector<int> meetingPoints(const Function &function);

} // namespace kiln::ptx

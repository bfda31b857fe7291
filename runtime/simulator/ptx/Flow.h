// The control flow of a function: where the two sides of a branch meet again.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::ptx {

/// For each branch, its immediate post-dominator: the first instruction that every path from it to the function's end
/// passes. −1 if that is the end, and for all other instructions.
std::vector<int> meetingPoints(const Function &function);

/// A register that an instruction reads or writes.
struct Use {
  int instruction = 0, reg = 0;
  bool isWrite = false;
};

/// The reads, each once, of registers that some way through the function has not written by then; what a guarded
/// instruction writes does not count. `uses` are in the order of the instructions.
std::vector<Use> unsureReads(const Function &function, const std::vector<Use> &uses);

} // namespace kiln::ptx

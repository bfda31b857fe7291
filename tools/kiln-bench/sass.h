// Reads what `nvdisasm -c` prints: machine code of NVIDIA's GPUs as text. Finds a kernel's loops, and counts
// instructions by class.

#pragma once

#include "tools/kiln-bench/instructions.h"

#include <string_view>
#include <vector>

namespace kiln::bench {

/// An instruction, without its guard.
struct SassInstruction {
  std::string opcode;   // "HMMA.16816.F32.BF16"
  std::string operands; // "R4, R8, R10, R4"
};

/// A loop: the instructions from a label to the branch back to it, by their numbers; no other loop lies within.
struct SassLoop {
  size_t begin = 0, end = 0; // [begin, end)
};

/// One kernel's code.
struct SassKernel {
  std::string name;
  std::vector<SassInstruction> code;
  std::vector<SassLoop> loops; // innermost ones, in the order of the text

  /// What so many of its instructions do, for one warp. Wavefronts are those of accesses without conflicts.
  Work workOf(size_t begin, size_t end) const;
  Work whole() const { return workOf(0, code.size()); }
  /// The main loop: of the innermost loops with most products the shortest one, which is the one without masks; where
  /// there is no product, the longest one. Null when there is no loop.
  const SassLoop *mainLoop() const;
};

/// All kernels of a text.
std::vector<SassKernel> readSass(std::string_view text);

/// The class of an instruction.
Class classOf(const SassInstruction &instruction);

} // namespace kiln::bench

// Parses the output of `nvdisasm -c`: machine code of NVIDIA's GPUs as text. Finds a kernel's loops, and counts
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

/// An innermost loop: the instructions from a label to the branch back to it, by their indices.
struct SassLoop {
  size_t begin = 0, end = 0; // [begin, end)
};

/// One kernel's code.
struct SassKernel {
  std::string name;
  std::vector<SassInstruction> code;
  std::vector<SassLoop> loops; // innermost ones, in the order of the text

  /// The work of instructions `begin` to `end` − 1, for one warp. Wavefronts are those without bank conflicts.
  Work workOf(size_t begin, size_t end) const;
  Work whole() const { return workOf(0, code.size()); }
  /// The main loop: the innermost loop with the most products; among several the shortest one, which has no masks. In
  /// code without products it is the longest loop. Null if there is no loop.
  const SassLoop *mainLoop() const;
};

/// All kernels of a text.
std::vector<SassKernel> readSass(std::string_view text);

/// The class of an instruction.
Class classOf(const SassInstruction &instruction);

} // namespace kiln::bench

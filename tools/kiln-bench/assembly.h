// Runs ptxas on the PTX of kernels, and nvdisasm on the machine code. Parses the output of `nvdisasm -c`: machine code
// of NVIDIA's GPUs as text. Finds a kernel's loops, and counts instructions by class.

#pragma once

#include "tools/kiln-bench/pipe_model.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::bench {

/// One kernel.
struct Assembly {
  std::string name, config, ptx;
  std::string output; // of ptxas
  std::string sass;   // of nvdisasm, if it was run
};

/// ptxas for a shell: in PATH, else in CUDA_PATH, else in the default folder of the CUDA Toolkit. Empty if there is
/// none, or if CUDA_PATH is empty. Throws Error if CUDA_PATH is relative.
std::string findPtxas();
/// As findPtxas(); throws Error if there is none.
std::string expectPtxas();

/// The PTX of a device's code, which may be followed by a cubin.
std::string ptxOf(const std::vector<char> &code);
/// The architecture for which a backend of this name compiles: "sm_80" of "sm_80:cubin".
std::string architectureOf(const std::string &backend);

/// Runs ptxas on all kernels, `threads` at a time, and then nvdisasm, unless its name is empty. Throws Error if one of
/// the programs cannot be run.
void assemble(std::vector<Assembly> &all, const std::string &ptxas, const std::string &architecture, int threads,
              const std::string &nvdisasm = {});

/// The registers of a thread, and the bytes that it spills, by ptxas.
int registersOf(const Assembly &kernel);
int spillBytesOf(const Assembly &kernel);
/// Whether ptxas reports a warning or an error.
bool hasWarning(const Assembly &kernel);
/// The problem of a kernel, empty if there is none. It is a warning, a spill, or an operation without a rounding mode
/// in PTX, which ptxas may fuse with another one.
std::string findProblem(const Assembly &kernel);

// --- Machine code (sass.cc) -----------------------------------------------------------------------------------------

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

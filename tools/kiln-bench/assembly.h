// Kernels as NVIDIA's programs see them: PTX through ptxas, and its machine code through nvdisasm.

#pragma once

#include <string>
#include <vector>

namespace kiln::bench {

/// One kernel.
struct Assembly {
  std::string name, config, ptx;
  std::string output; // what ptxas says
  std::string sass;   // what nvdisasm says, when it is asked
};

/// ptxas on the path, or where its toolkit goes; empty when it is in neither.
std::string findPtxas();
/// The same; throws Error when there is none.
std::string expectPtxas();

/// The PTX of a device's code, behind which there may be a cubin.
std::string ptxOf(const std::vector<char> &code);
/// The architecture for which a backend of this name compiles: "sm_80" of "sm_80:cubin".
std::string architectureOf(const std::string &backend);

/// Has ptxas look at all of them, `threads` at a time; then nvdisasm, unless its name is empty. Throws Error when one
/// of the programs cannot be run.
void assemble(std::vector<Assembly> &all, const std::string &ptxas, const std::string &architecture, int threads,
              const std::string &nvdisasm = {});

/// Registers of a thread, and bytes that it puts aside in memory, as ptxas says.
int registersOf(const Assembly &kernel);
int spillBytesOf(const Assembly &kernel);
/// Whether ptxas warns of it, or refuses it.
bool isWarnedOf(const Assembly &kernel);
/// What is wrong with a kernel, or nothing: a warning, a spill, or an operation whose rounding PTX leaves open (it may
/// be fused with its neighbour).
std::string complaintOf(const Assembly &kernel);

} // namespace kiln::bench

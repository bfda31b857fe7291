// Runs ptxas on the PTX of kernels, and nvdisasm on the machine code.

#pragma once

#include <string>
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
bool isWarnedOf(const Assembly &kernel);
/// The problem of a kernel, empty if there is none: a warning, a spill, or an operation without a rounding mode in PTX,
/// which ptxas may fuse with another one.
std::string complaintOf(const Assembly &kernel);

} // namespace kiln::bench

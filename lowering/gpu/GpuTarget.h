// The GPU architectures for which code is generated, and their machine code.

#pragma once

#include <string>
#include <vector>

namespace kiln::lowering::gpu {

/// An NVIDIA architecture, by LLVM's name of it.
struct GpuTarget {
  std::string architecture; // "sm_80", "sm_90a", …
  int capability = 80;      // ten times the compute capability
  /// Shared memory that one program may use, in bytes (CUDA C++ Programming Guide, "Technical Specifications per
  /// Compute Capability").
  int64_t sharedBytes = 163 << 10;
  /// Ten times the oldest PTX version that supports it (PTX ISA, "Release Notes"), as in LLVM. A PTX text that needs no
  /// newer version states this one.
  unsigned ptxVersion = 70;
  /// Whether its tensor cores multiply 8-bit floats directly and accumulate in fewer bits than f32 has. For other
  /// architectures, ptxas converts such products to f16.
  bool coarseBytes = false;
};

/// The supported architectures.
const std::vector<GpuTarget> &gpuTargets();
/// The architecture with this name; null if there is none.
const GpuTarget *gpuNamed(const std::string &name);

// --- Cubins ----------------------------------------------------------------------------------------------------------

// PTX compiled to the machine code of one architecture (a cubin) with NVIDIA's nvJitLink, if it is installed.

/// Whether nvJitLink is available: `libnvJitLink.so.13` or `.so.12`, in the system's library path, below CUDA_PATH
/// (empty: nowhere at all) or in `/usr/local/cuda`. The library is opened once and never closed.
bool hasCubinLinker();
/// Its version, on which cubins depend: "nvJitLink 13.0". Throws Error (device), with the searched places, if there is
/// none.
std::string cubinLinkerVersion();
/// The cubin of a PTX text. Throws BackendError with nvJitLink's log, and Error (device) without nvJitLink.
std::vector<char> emitCubin(const std::vector<char> &ptx, const GpuTarget &target);

} // namespace kiln::lowering::gpu

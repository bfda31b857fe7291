// What GPU code is generated for.

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
  /// Ten times the oldest version of PTX that has it (PTX ISA, "Release Notes"): what a text is of that needs no newer
  /// one, as LLVM has it.
  unsigned ptxVersion = 70;
  /// Whether its tensor cores multiply floats of 8 bits themselves, and then sum in fewer bits than f32 has; ptxas
  /// makes products of f16 of them for others.
  bool coarseBytes = false;
};

/// The architectures that Kiln makes code for.
const std::vector<GpuTarget> &gpuTargets();
/// The one with this name; null for another name.
const GpuTarget *gpuNamed(const std::string &name);

} // namespace kiln::lowering::gpu

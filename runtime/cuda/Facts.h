// The facts about a GPU, and the code that it runs.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/gpu/GpuTarget.h"
#include "runtime/cuda/Connection.h"

namespace kiln::cuda {

struct Gpu {
  std::string name;                               // "NVIDIA H200"
  int number = 0;                                 // the device number of the driver
  int capability = 0;                             // compute capability times ten
  const lowering::gpu::GpuTarget *code = nullptr; // the code that it runs
  GpuFacts facts;                                 // with the architecture of `code`

  /// Whether `code` is for exactly this compute capability, so that the GPU accepts a cubin.
  bool isExact() const { return code->capability == capability; }
};

/// The number of GPUs. Throws Error (device).
int countGpus(const Connection &connection);

/// The GPU with this number. Throws Error (device) if there is none, or if it is older than all targets of Kiln.
Gpu readGpu(const Connection &connection, int number);

/// The target for a GPU of this compute capability times ten: its own, otherwise the newest older one that it runs.
/// Architecture-specific code, such as sm_90a, runs on no other capability. Null if there is none.
const lowering::gpu::GpuTarget *codeFor(int capability);

} // namespace kiln::cuda

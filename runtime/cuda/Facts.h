// What is known of a GPU, and which code it gets.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/gpu/GpuTarget.h"
#include "runtime/cuda/Connection.h"

namespace kiln::cuda {

struct Gpu {
  std::string name;                               // "NVIDIA H200"
  int number = 0;                                 // the driver's, of the device
  int capability = 0;                             // compute capability, times ten
  const lowering::gpu::GpuTarget *code = nullptr; // what it runs
  GpuFacts facts;                                 // of this GPU, with the architecture of `code`

  /// Whether `code` is made for just this capability, so that a GPU takes it assembled.
  bool isExact() const { return code->capability == capability; }
};

/// How many GPUs the driver has. Throws Error (device).
int countGpus(const Connection &connection);

/// The GPU with this number. Throws Error (device) when there is none, or it is older than all code that Kiln makes.
Gpu readGpu(const Connection &connection, int number);

/// The code for a GPU of this compute capability, times ten: that made for it, else the newest for an older one that it
/// runs, too; what is made for one capability alone, sm_90a say, runs on no other. Null when there is none.
const lowering::gpu::GpuTarget *codeFor(int capability);

} // namespace kiln::cuda

// Compiles PTX to the machine code of one architecture (a cubin) with NVIDIA's nvJitLink, if it is installed.

#pragma once

#include "lowering/gpu/GpuTarget.h"

#include <string>
#include <vector>

namespace kiln::lowering::gpu {

/// Whether nvJitLink is available: the library that KILN_NVJITLINK names (empty: none), else `libnvJitLink.so.13` or
/// `.so.12`, in the system's library path, below CUDA_PATH (empty: nowhere at all) or in `/usr/local/cuda`. The library
/// is opened once and never closed.
bool hasCubinLinker();
/// Its version, on which cubins depend: "nvJitLink 13.0". Throws Error (device), with the searched places, if there is
/// none.
std::string cubinLinkerVersion();
/// The cubin of a PTX text. Throws BackendError with nvJitLink's log, and Error (device) without nvJitLink.
std::vector<char> emitCubin(const std::vector<char> &ptx, const GpuTarget &target);

} // namespace kiln::lowering::gpu

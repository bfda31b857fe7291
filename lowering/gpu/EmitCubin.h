// From PTX to the machine code of one architecture, by NVIDIA's nvJitLink where it is found.

#pragma once

#include "lowering/gpu/GpuTarget.h"

#include <string>
#include <vector>

namespace kiln::lowering::gpu {

/// Whether there is an nvJitLink: the library that KILN_NVJITLINK names (empty: none), else `libnvJitLink.so.13` or
/// `.so.12`, where the system looks for libraries, below CUDA_PATH (empty: nowhere at all) or in `/usr/local/cuda`.
/// Opened once, never closed.
bool hasCubinLinker();
/// Its version, on which cubins depend: "nvJitLink 13.0". Throws Error (device), with the places looked at, when there
/// is none.
std::string cubinLinkerVersion();
/// The cubin of a PTX text. Throws BackendError with nvJitLink's log, and Error (device) when there is none.
std::vector<char> emitCubin(const std::vector<char> &ptx, const GpuTarget &target);

} // namespace kiln::lowering::gpu

// The GPU as a backend: lowering/gpu/README.md says how its passes generate code.

#pragma once

#include "lowering/Backend.h"

namespace kiln::lowering::gpu {

/// The backend for an architecture, "sm_80" or one of gpuTargets(), whose code is PTX; "sm_80:cubin" for one whose code
/// is PTX, a zero, and the cubin of it; ":checked" at the end for kernels that check what they assume; null for a name
/// that does not begin as theirs. Throws Error for an architecture that Kiln makes no code for, and (device) for cubins
/// where there is no nvJitLink.
std::shared_ptr<const Backend> openBackend(const std::string &name);

} // namespace kiln::lowering::gpu

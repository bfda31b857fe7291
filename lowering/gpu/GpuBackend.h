// The GPU as a backend: lowering/gpu/README.md says how its passes generate code.

#pragma once

#include "lowering/Backend.h"

namespace kiln::lowering::gpu {

/// The backend for a target name:
/// - "sm_80", or another one of gpuTargets(): its code is PTX.
/// - "sm_80:cubin": its code is PTX, a zero byte, and the cubin.
/// - ":checked" at the end: assume() is checked, as device_assert().
/// Null for a name of another form. Throws Error for an unsupported architecture, and Error (device) for cubins without
/// nvJitLink.
std::shared_ptr<const Backend> openBackend(const std::string &name);

} // namespace kiln::lowering::gpu

// The GPU as a backend: lowering/README.md says what its passes do.

#pragma once

#include "lowering/Backend.h"

namespace kiln::lowering::gpu {

/// The backend for an architecture, "sm_80" or one of gpuTargets(); null for a name that does not begin as theirs.
/// Throws Error for an architecture that Kiln makes no code for.
std::shared_ptr<const Backend> openBackend(const std::string &name);

} // namespace kiln::lowering::gpu

// The CPU's backend.

#pragma once

#include "lowering/Backend.h"

namespace kiln::lowering::cpu {

/// The backend of a CPU by name, as lowering::openBackend() takes them. Throws Error for a name that is none, and for a
/// CPU below x86-64-v3.
std::shared_ptr<const Backend> openBackend(const std::string &name);

} // namespace kiln::lowering::cpu

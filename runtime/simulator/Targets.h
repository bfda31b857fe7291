// The published targets and versions of PTX.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::simulator {

/// The maximum shared memory of a CTA, static and dynamic, on GPUs of the module's `.target`. Throws Error unless the
/// text has a known `.version` and a known `.target`.
int64_t checkTarget(const ptx::Module &module);

} // namespace kiln::simulator

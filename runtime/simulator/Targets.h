// The targets and versions that PTX texts may be for, as far as NVIDIA has told of them.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::simulator {

/// The shared memory that a block may have on the GPUs of the module's `.target`, static and dynamic. Throws Error
/// unless the text has a `.version` and a `.target`, and both are known.
int64_t checkTarget(const ptx::Module &module);

} // namespace kiln::simulator

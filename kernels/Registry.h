// Registry of the kernels of this folder, for tools that find kernels by name.

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln {

/// All kernels, in alphabetical order of their names.
const std::vector<const Kernel *> &kernels();

} // namespace kiln

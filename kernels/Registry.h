// Registry of the kernels of this folder, for tools that find kernels by name.

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln {

/// All kernels, in alphabetical order of their names.
const std::vector<const Kernel *> &kernels();
/// The kernel called `name`. Throws Error with all names if there is none.
const Kernel &kernelNamed(const std::string &name);

} // namespace kiln

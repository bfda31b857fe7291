// Lists kernels without compiling them.

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln::tools {

/// The kernels, each with a line for every argument (name, view or scalar, what it is) and every field of its config
/// (name, default, what it is).
std::string listOf(const std::vector<const Kernel *> &kernels);

} // namespace kiln::tools

// out = x + y: the smallest kernel, and the first to read.

#pragma once

#include "dialect/dsl/Plan.h"

namespace kiln {

struct AddConfig {
  int block = 1024; // elements a program
};

extern const Kernel addKernel;

/// out = x + y, elementwise over vectors of one length. `out` may be `x` or `y`.
Plan planAdd(const Target &target, const TensorRef &x, const TensorRef &y, const TensorRef &out,
             const AddConfig &config = {});

} // namespace kiln

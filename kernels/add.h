// out = x + y: the smallest kernel, and the first one to read.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct AddConfig {
  int block = 1024; // elements a program
};

extern const Kernel addKernel;

/// Default config for n elements.
AddConfig pickAdd(const Target &target, int64_t n);

/// out = x + y, elementwise over vectors of equal length. `out` may be `x` or `y`.
Plan planAdd(const Target &target, const TensorRef &x, const TensorRef &y, const TensorRef &out,
             const std::optional<AddConfig> &config = {});

} // namespace kiln

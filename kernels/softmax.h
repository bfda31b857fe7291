// Row softmax: a whole row is one tile, whatever its length.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct SoftmaxConfig {
  int rows = 4; // rows a program
};

extern const Kernel softmaxKernel;

/// The rows of a program on a machine.
SoftmaxConfig pickSoftmax(const Target &target, int64_t C); // of rows C wide

/// out[n, c] = exp(x[n, c]) / Σ_c exp(x[n, c]). x, out (N, C), f32, bf16 or f16; `out` may be `x`.
Plan planSoftmax(const Target &target, const TensorRef &x, const TensorRef &out,
                 const std::optional<SoftmaxConfig> &config = {});

} // namespace kiln

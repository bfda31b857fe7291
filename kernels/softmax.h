// Row softmax: a tile has whole rows, of any length.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct SoftmaxConfig {
  int rows = 4; // rows a program
};

extern const Kernel softmaxKernel;

/// Default config for rows of C elements.
SoftmaxConfig pickSoftmax(const Target &target, int64_t C);

/// out[n, c] = exp(x[n, c]) / Σ_c exp(x[n, c]). x, out (N, C), f32, bf16 or f16; `out` may be `x`.
Plan planSoftmax(const Target &target, const TensorRef &x, const TensorRef &out,
                 const std::optional<SoftmaxConfig> &config = {});

} // namespace kiln

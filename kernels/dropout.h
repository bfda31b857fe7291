// Dropout as a separate kernel, where no GEMM precedes that could apply it in its epilogue. Gradients are an example.

#pragma once

#include "kernels/dropout_rng.h"

namespace kiln {

struct DropoutConfig {
  int rows = 8, columns = 128;               // of a tile
  DropoutMode dropout = DropoutMode::random; // set by the plan
};

extern const Kernel dropoutKernel;

/// Default config for rows of C elements.
DropoutConfig pickDropout(const Target &target, int64_t C);

/// out = x ∘ mask · scale. x, out (N, C); `out` may be `x`. The backward pass of dropout is this plan too.
Plan planDropout(const Target &target, const TensorRef &x, const TensorRef &out, const Dropout &dropout,
                 const std::optional<DropoutConfig> &config = {});

} // namespace kiln

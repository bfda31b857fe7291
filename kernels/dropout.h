// Dropout alone, for what no product comes before: gradients on their way back to one, above all.

#pragma once

#include "kernels/chances.h"

namespace kiln {

struct DropoutConfig {
  int rows = 8, columns = 128; // of a tile
  Drop drop = Drop::chance;    // set by the plan
};

extern const Kernel dropoutKernel;

/// The tile for rows of C elements on a machine.
DropoutConfig pickDropout(const Target &target, int64_t C);

/// out = x ∘ mask · scale. x, out (N, C); `out` may be `x`. The gradient of a result of dropout becomes that of what it
/// was made of in the same way.
Plan planDropout(const Target &target, const TensorRef &x, const TensorRef &out, const Dropout &dropout,
                 const std::optional<DropoutConfig> &config = {});

} // namespace kiln

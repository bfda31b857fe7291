// Softmax cross-entropy, alone or fused with its gradient, which then takes the logits' place.
//
//     loss[n]      = log Σ_v exp(x[n, v]) − x[n, target]
//     dlogits[n, v] = (softmax(x[n])[v] − [v = target]) · scale
//
// A row whose target is `ignore` has loss 0 and gradient 0. Columns from V to the padded width are not part
// of the sum, and their gradient is 0.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct CrossEntropyConfig {
  int block = 256;     // columns a tile
  int rows = 1;        // rows a program
  bool scaled = false; // the gradient's scale is multiplied by one in memory; set by the plan
};

/// The target that marks a position without one, as in PyTorch.
inline constexpr int64_t ignoreIndex = -100;

extern const Kernel crossEntropyKernel, crossEntropyLossKernel;

/// The columns of a tile and the rows of a program on a machine, for V columns.
CrossEntropyConfig pickCrossEntropy(const Target &target, int64_t V);

/// Losses, and logits replaced by their gradient times `scale` (1 / tokens for a mean), and times `lossScale` (1) f32,
/// when given, which the losses are not multiplied by.
/// logits (N, Vpadded) f32, bf16 or f16, any row stride; targets (N) i32; losses (N) f32; V ≤ Vpadded real
/// columns. A target that is neither in [0, V) nor `ignore` fails a check.
Plan planCrossEntropy(const Target &target, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                      int64_t V, float scale, int64_t ignore = ignoreIndex,
                      const std::optional<TensorRef> &lossScale = {},
                      const std::optional<CrossEntropyConfig> &config = {});

/// Losses alone; the logits are only read.
Plan planCrossEntropyLoss(const Target &target, const TensorRef &logits, const TensorRef &targets,
                          const TensorRef &losses, int64_t V, int64_t ignore = ignoreIndex,
                          const std::optional<CrossEntropyConfig> &config = {});

} // namespace kiln

// Softmax cross-entropy, alone or fused with its gradient, which then takes the logits' place.
//
//     loss[n]      = log Σ_v exp(x[n, v]) − x[n, target]
//     dlogits[n, v] = (softmax(x[n])[v] − [v = target]) · scale
//
// With label smoothing ε a target is (1 − ε) of itself and ε / V of every column:
//
//     loss[n]       = (1 − ε) · (−log p[target]) + ε · mean_v(−log p[v]),   p = softmax(x[n])
//     dlogits[n, v] = (p[v] − (1 − ε) · [v = target] − ε / V) · scale
//
// A row whose target is `ignore` has loss 0, gradient 0 and no hit. Columns from V to the padded width are not part
// of the sum, and their gradient is 0.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct CrossEntropyConfig {
  int block = 256;     // columns a tile
  int rows = 1;        // rows a program
  int warps = 4;       // of a program on a GPU
  bool padded = false; // the padding is read with the row, and masked, so that accesses are aligned
  bool whole = false;  // a tile is a whole row with its padding, which is read and written once; with `padded`
  // Set by the plan:
  bool scaled = false;   // the gradient's scale is multiplied by one in memory
  bool smoothed = false; // with label smoothing
  bool counted = false;  // hits are written
};

/// What a loss may have beside the usual. Without it nothing is computed that would not be.
struct CrossEntropyOptions {
  float smoothing = 0;                // ε of label smoothing, from 0 to 1
  std::optional<TensorRef> hits = {}; // (N) f32: 1 where the first of the largest logits is the target's, else 0
};

/// The target that marks a position without one, as in PyTorch.
inline constexpr int64_t ignoreIndex = -100;

extern const Kernel crossEntropyKernel, crossEntropyLossKernel;

/// How rows are read on a machine that are so wide, padding included.
CrossEntropyConfig pickCrossEntropy(const Target &target, int64_t width, Type type);

/// Losses, and logits replaced by their gradient times `scale` (1 / tokens for a mean), and times `lossScale` (1) f32,
/// when given, which the losses are not multiplied by.
/// logits (N, Vpadded) f32, bf16 or f16, any row stride; targets (N) i32; losses (N) f32; V ≤ Vpadded real
/// columns. A target that is neither in [0, V) nor `ignore` fails a check.
Plan planCrossEntropy(const Target &target, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                      int64_t V, float scale, int64_t ignore = ignoreIndex,
                      const std::optional<TensorRef> &lossScale = {}, const CrossEntropyOptions &options = {},
                      const std::optional<CrossEntropyConfig> &config = {});

/// Losses alone; the logits are only read.
Plan planCrossEntropyLoss(const Target &target, const TensorRef &logits, const TensorRef &targets,
                          const TensorRef &losses, int64_t V, int64_t ignore = ignoreIndex,
                          const CrossEntropyOptions &options = {},
                          const std::optional<CrossEntropyConfig> &config = {});

} // namespace kiln

// Softmax cross-entropy: the losses alone, or also their gradient, which overwrites the logits.
//
//     loss[n]      = log Σ_v exp(x[n, v]) − x[n, target]
//     dlogits[n, v] = (softmax(x[n])[v] − [v = target]) · scale
//
// Label smoothing ε gives the target (1 − ε) and every column ε / V:
//
//     loss[n]       = (1 − ε) · (−log p[target]) + ε · mean_v(−log p[v]),   p = softmax(x[n])
//     dlogits[n, v] = (p[v] − (1 − ε) · [v = target] − ε / V) · scale
//
// A row whose target is `ignore` has loss 0, gradient 0 and is not correct. Columns from V to the padded width are
// excluded from the sum, and their gradient is 0.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct CrossEntropyConfig {
  int block = 256;     // columns a tile
  int rows = 1;        // rows a program
  int warps = 4;       // warps of a CTA, on a GPU
  bool padded = false; // reads the padding of a row and masks it, for aligned accesses
  bool whole = false;  // a tile is a whole padded row, read and written once; requires `padded`
  // Set by the plan:
  bool scaled = false;       // multiplies the gradient by a loss scale in memory
  bool smoothed = false;     // with label smoothing
  bool storeCorrect = false; // writes `correct`
};

/// Optional parts of the loss; unused ones cost nothing.
struct CrossEntropyOptions {
  float smoothing = 0;                   // ε of label smoothing, from 0 to 1
  std::optional<TensorRef> correct = {}; // (N) f32: 1 if the first of the largest logits is the target, otherwise 0
};

/// The target that marks a position without a target, as in PyTorch.
inline constexpr int64_t ignoreIndex = -100;

extern const Kernel crossEntropyKernel, crossEntropyLossKernel;

/// Default config for rows of this width, padding included.
CrossEntropyConfig pickCrossEntropy(const Target &target, int64_t width, Type type);

/// Writes the losses, and replaces the logits by their gradient times `scale` (1 / tokens for a mean). The gradient is
/// also multiplied by `lossScale` (1) f32 if it is given. The losses are not scaled. logits (N, Vpadded) f32, bf16 or
/// f16, any row stride; targets (N) i32; losses (N) f32; V ≤ Vpadded real columns. A target outside [0, V) that is not
/// `ignore` fails a check.
Plan planCrossEntropy(const Target &target, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                      int64_t V, float scale, int64_t ignore = ignoreIndex,
                      const std::optional<TensorRef> &lossScale = {}, const CrossEntropyOptions &options = {},
                      const std::optional<CrossEntropyConfig> &config = {});

/// Losses only; the logits are not written.
Plan planCrossEntropyLoss(const Target &target, const TensorRef &logits, const TensorRef &targets,
                          const TensorRef &losses, int64_t V, int64_t ignore = ignoreIndex,
                          const CrossEntropyOptions &options = {},
                          const std::optional<CrossEntropyConfig> &config = {});

} // namespace kiln

// The feed-forward half of a block: C → 4C, GELU, 4C → C, plus the residual.

#pragma once

#include "models/nn/linear.h"

namespace kiln {

/// Names of the two layers.
struct MlpNames {
  LayerNames input, output;
};

class Mlp {
public:
  /// Layers (C → 4C) and (4C → C).
  Mlp(ParameterList &list, const MlpNames &names, int64_t width, double deviation, double residualDeviation);

  struct Saved {
    TensorRef preact, active; // (N, 4C) before and after GELU
  };
  Saved take(Build &build, int64_t rows) const;

  /// y = mlp(x) + residual. x, residual, y (N, C).
  void forward(Build &build, const TensorRef &x, const TensorRef &residual, const Saved &saved,
               const TensorRef &y) const;
  /// The same without what only the backward pass needs.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const;
  /// dx from dy; releases `saved` on the way.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx) const;

private:
  int64_t width;
  Linear input, output;
};

} // namespace kiln

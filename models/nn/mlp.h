// The feed-forward half of a block: C → inner, an activation, inner → C, plus the residual.

#pragma once

#include "models/nn/dropout.h"
#include "models/nn/linear.h"

namespace kiln {

/// Names of the two layers.
struct MlpNames {
  LayerNames input, output;
};

struct MlpOptions {
  int64_t inner = 0; // 0: four times the width
  Activation activation = Activation::gelu;
  LinearOptions linear = {};
};

class Mlp {
public:
  /// Layers (C → inner) and (inner → C), in a model of sequences of at most `context` places.
  Mlp(ParameterList &list, const MlpNames &names, int64_t width, const MlpOptions &options, const Inits &inits,
      const DropoutOptions &dropout, int64_t context);

  struct Saved {
    std::optional<TensorRef> preact; // (N, inner) before the activation, where its derivative needs that
    TensorRef active;                // (N, inner) after it, and after dropout
  };
  Saved take(Build &build, int64_t rows) const;

  /// y = residual + mlp(x). x, residual, y (N, C).
  void forward(Build &build, const TensorRef &x, const TensorRef &residual, const Saved &saved,
               const TensorRef &y) const;
  /// The same without what only the backward pass needs.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const;
  /// dx from dy, or dx += with `add`; releases `saved` on the way.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                bool add) const;

private:
  bool keepsPreact() const { return activation != Activation::none && !isKnownByResult(activation); }

  int64_t inner;
  Activation activation;
  Linear input, output;
  DropoutSite activeSite, residualSite;
};

} // namespace kiln

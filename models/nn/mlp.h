// The feed-forward half of a block: C → inner, an activation, inner → C, plus the residual.

#pragma once

#include "models/nn/dropout.h"
#include "models/nn/kept.h"
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

  /// What the backward pass needs.
  struct Saved {
    Reader x;    // (N, C) what came in
    Kept preact; // (N, inner) before the activation, where its derivative needs that
    Kept active; // (N, inner) after it, and after dropout
  };

  /// y = residual + mlp(x). x, residual, y (N, C): begin() does all up to the second product, of the N rows that `x`
  /// gives, finish() that; it may be repeated.
  void begin(Build &build, const Reader &x, int64_t rows, Saved &saved) const;
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  void drop(Build &build, Saved &saved) const;
  /// The same without what only the backward pass needs.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const;
  /// dx from dy, or dx += with `add`; releases `saved` on the way.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  bool keepsPreact() const { return needsArgument(activation); }
  /// The first product and what follows it, from the layer's input.
  void activate(Build &build, Saved &saved) const;

  int64_t inner;
  Activation activation;
  Linear input, output;
  DropoutSite activeSite, residualSite;
};

} // namespace kiln

// The MLP of a block: C → inner, an activation, inner → C, plus the residual.

#pragma once

#include "models/nn/dropout.h"
#include "models/nn/linear.h"
#include "models/nn/saved_activation.h"

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
  /// Layers (C → inner) and (inner → C), in a model of sequences of at most `context` positions.
  Mlp(ParameterList &list, const MlpNames &names, int64_t width, const MlpOptions &options, const Inits &inits,
      const DropoutOptions &dropout, int64_t context);

  /// Activations saved for the backward pass.
  struct Saved {
    Reader x;               // (N, C) the input
    SavedActivation preact; // (N, inner) pre-activation, if the derivative needs it
    SavedActivation active; // (N, inner) after the activation and dropout
  };

  /// y = residual + mlp(x). x, residual, y (N, C). begin() computes all up to the second GEMM from the N rows of `x`,
  /// finish() that GEMM; finish() may be repeated.
  void begin(Build &build, const Reader &x, int64_t rows, Saved &saved) const;
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  void drop(Build &build, Saved &saved) const;
  /// Both without the activations that only the backward pass needs.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const;
  /// dx from dy, or dx += with `add`. Releases `saved` as it goes.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  bool keepsPreact() const { return needsArgument(activation); }
  /// The first GEMM and its epilogue, from the layer's input.
  void activate(Build &build, Saved &saved) const;

  int64_t inner;
  Activation activation;
  Linear input, output;
  DropoutSite activeSite, residualSite;
};

} // namespace kiln

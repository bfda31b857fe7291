// The layers of a block, except attention: linear layers, LayerNorm and the MLP.

#pragma once

#include "kernels/matmul.h"
#include "models/nn/build.h"
#include "models/nn/dropout.h"

namespace kiln {

//===-- Linear layers -------------------------------------------------------------------------------------------===//
// y = x · W + b with W stored (in, out), and its fused epilogues.

struct LinearOptions {
  bool bias = true;
};

class Linear {
public:
  /// The weight (in, out) and the bias (out), if any.
  Linear(ParameterList &list, const LayerNames &names, int64_t in, int64_t out, const LinearInit &init,
         LinearOptions options = {});

  /// y = residual + drop(activation(x · W + b)). The epilogue selects the parts, except the bias, which the layer has
  /// or lacks. x (N, in), y (N, out).
  void forward(Build &build, const TensorRef &x, const TensorRef &y, LinearEpilogue epilogue = {}) const;

  /// dW (+)= xᵀ · dy, db (+)= Σ dy. They may be deferred (Build::deferred); then x and dy must stay unchanged.
  void weightGradient(Build &build, const TensorRef &x, const TensorRef &dy) const;
  /// dx = dy · Wᵀ, or dx += with `add`.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx, bool add = false) const;
  /// dx = (dy · Wᵀ) ∘ the derivative of drop(activation(·)), the function that produced x; dx may be `backward.from`.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx, const LinearBackward &backward) const;

private:
  int weight;
  std::optional<int> bias;
};

//===-- LayerNorm -----------------------------------------------------------------------------------------------===//

/// Options: the divisor of the variance is width − ddof; epsilon is inside or outside the root; weight and bias, or
/// none.
struct NormOptions {
  int ddof = 0;
  double epsilon = 1e-5;
  bool epsOutsideSqrt = false;
  bool affine = true;
  bool operator==(const NormOptions &) const = default;
};

class LayerNorm {
public:
  /// The weight, ones, and the bias, zeros, both (width), if affine.
  LayerNorm(ParameterList &list, const LayerNames &names, int64_t width, const NormOptions &options);

  /// Saved for the backward pass, in addition to the input.
  struct Saved {
    TensorRef mean, rstd; // (N) each
  };
  Saved take(Build &build, int64_t rows) const;
  void release(Build &build, const Saved &saved) const;

  /// y = the normalised x. x, y (N, width); y may be x.
  void forward(Build &build, const TensorRef &x, const Saved &saved, const TensorRef &y) const;
  /// dx = the gradient of x, plus `residual` if given. The parameters' gradients are computed too, or deferred. dx may
  /// be `dy` or `residual`.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                const std::optional<TensorRef> &residual = {}) const;

private:
  NormOptions options;
  int weight = 0, bias = 0; // if affine
};

//===-- The MLP -------------------------------------------------------------------------------------------------===//
// The MLP of a block: C → inner, an activation, inner → C, plus the residual.

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

  /// y = residual + mlp(x). x, residual, y (N, C). begin() computes all up to the second GEMM from the N = batch · time
  /// rows of `x`, finish() that GEMM; finish() may be repeated.
  void begin(Build &build, const Reader &x, int64_t batch, int64_t time, Saved &saved) const;
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

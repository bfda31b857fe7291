// y = x · W + b with W stored (in, out), and the fusions that a transformer needs.

#pragma once

#include "models/nn/build.h"

#include <optional>

namespace kiln {

class Linear {
public:
  /// The weight (in, out), drawn with `deviation`, and the bias (out), zero.
  Linear(ParameterList &list, const LayerNames &names, int64_t in, int64_t out, double deviation);

  /// y = x · W + b. x (N, in), y (N, out).
  void forward(Build &build, const TensorRef &x, const TensorRef &y) const;
  /// y = gelu(x · W + b); `preact` (N, out), when given, keeps what gelu was applied to.
  void forwardGelu(Build &build, const TensorRef &x, const std::optional<TensorRef> &preact, const TensorRef &y) const;
  /// y = x · W + b + residual; y may be `residual`.
  void forwardResidual(Build &build, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const;

  /// dW (+)= xᵀ · dy, db (+)= Σ dy.
  void weightGradient(Build &build, const TensorRef &x, const TensorRef &dy) const;
  /// dx = dy · Wᵀ.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx) const;
  /// dx = (dy · Wᵀ) ∘ gelu'(preact); dx may be `preact`.
  void inputGradientGelu(Build &build, const TensorRef &dy, const TensorRef &preact, const TensorRef &dx) const;

private:
  int weight, bias;
};

} // namespace kiln

// y = x · W + b with W stored (in, out), and its fused epilogues.

#pragma once

#include "kernels/matmul.h"
#include "models/nn/build.h"

namespace kiln {

struct LinearOptions {
  bool bias = true;
};

class Linear {
public:
  /// The weight (in, out) and the bias (out), if any.
  Linear(ParameterList &list, const LayerNames &names, int64_t in, int64_t out, const LinearInit &init,
         LinearOptions options = {});

  /// y = residual + drop(activation(x · W + b)), of which the epilogue selects parts; the layer decides about the bias.
  /// x (N, in), y (N, out).
  void forward(Build &build, const TensorRef &x, const TensorRef &y, LinearEpilogue epilogue = {}) const;

  /// dW (+)= xᵀ · dy, db (+)= Σ dy. They may be deferred (Build::deferred); then x and dy must stay unchanged.
  void weightGradient(Build &build, const TensorRef &x, const TensorRef &dy) const;
  /// dx = dy · Wᵀ, or dx += with `add`.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx, bool add = false) const;
  /// dx = (dy · Wᵀ) ∘ the derivative of drop(activation(·)), the function that produced x; dx may be `slope.from`.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx, const LinearBackward &backward) const;

private:
  int weight;
  std::optional<int> bias;
};

} // namespace kiln

// y = x · W + b with W stored (in, out), and what a transformer fuses with it.

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

  /// y = residual + drop(activation(x · W + b)); the epilogue says which of these there are, but for the bias. x (N,
  /// in), y (N, out).
  void forward(Build &build, const TensorRef &x, const TensorRef &y, LinearEpilogue epilogue = {}) const;

  /// dW (+)= xᵀ · dy, db (+)= Σ dy. They may wait for others (Build::gathered): x and dy must stay as they are then.
  void weightGradient(Build &build, const TensorRef &x, const TensorRef &dy) const;
  /// dx = dy · Wᵀ, or dx += with `add`.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx, bool add = false) const;
  /// dx = (dy · Wᵀ) ∘ the derivative of drop(activation(·)), from which x came; dx may be `slope.from`.
  void inputGradient(Build &build, const TensorRef &dy, const TensorRef &dx, const LinearSlope &slope) const;

private:
  int weight;
  std::optional<int> bias;
};

} // namespace kiln

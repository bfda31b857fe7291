// LayerNorm with its two parameters.

#pragma once

#include "models/nn/build.h"

namespace kiln {

class LayerNorm {
public:
  /// The weight, ones, and the bias, zeros, both (width). `epsilon` is added to the variance.
  LayerNorm(ParameterList &list, const LayerNames &names, int64_t width, double epsilon);

  /// What the backward pass needs beside the input.
  struct Saved {
    TensorRef mean, rstd; // (N) each
  };
  Saved take(Build &build, int64_t rows) const;
  void release(Build &build, const Saved &saved) const;

  /// y = normalised x. x, y (N, width).
  void forward(Build &build, const TensorRef &x, const Saved &saved, const TensorRef &y) const;
  /// dx = gradient by x, or dx += with `add`; the parameters' gradients beside it. dx may be `dy`.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                bool add) const;

private:
  int weight, bias;
  float epsilon;
};

} // namespace kiln

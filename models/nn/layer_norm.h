// LayerNorm with its two parameters.

#pragma once

#include "models/nn/build.h"

namespace kiln {

/// What rows are divided by: the root of their variance over width − ddof, and of epsilon, or of epsilon added outside
/// of the root; and whether a weight and a bias follow.
struct NormOptions {
  int ddof = 0;
  double epsilon = 1e-5;
  bool outside = false;
  bool affine = true;
  bool operator==(const NormOptions &) const = default;
};

class LayerNorm {
public:
  /// The weight, ones, and the bias, zeros, both (width), if affine.
  LayerNorm(ParameterList &list, const LayerNames &names, int64_t width, const NormOptions &options);

  /// What the backward pass needs beside the input.
  struct Saved {
    TensorRef mean, rstd; // (N) each
  };
  Saved take(Build &build, int64_t rows) const;
  void release(Build &build, const Saved &saved) const;

  /// y = normalised x. x, y (N, width); y may be x.
  void forward(Build &build, const TensorRef &x, const Saved &saved, const TensorRef &y) const;
  /// dx = gradient by x, and `residual` if there is one; the parameters' gradients beside it, or together with others.
  /// dx may be `dy` or `residual`.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                const std::optional<TensorRef> &residual = {}) const;

private:
  NormOptions options;
  int weight = 0, bias = 0; // if affine
};

} // namespace kiln

// LayerNorm with its two parameters.

#pragma once

#include "models/nn/build.h"

namespace kiln {

/// Options: the root of the variance over width − ddof, with epsilon inside or outside the root; with weight and bias
/// or without.
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

} // namespace kiln

// The feed-forward layer's launches.

#include "models/nn/mlp.h"

namespace kiln {

Mlp::Mlp(ParameterList &list, const MlpNames &names, int64_t width, double deviation, double residualDeviation)
    : width(width), input(list, names.input, width, 4 * width, deviation),
      output(list, names.output, 4 * width, width, residualDeviation) {}

Mlp::Saved Mlp::take(Build &b, int64_t rows) const {
  TensorRef preact = b.take("mlp preact", {rows, 4 * width});
  return {preact, b.take("mlp active", {rows, 4 * width})};
}

void Mlp::forward(Build &b, const TensorRef &x, const TensorRef &residual, const Saved &s, const TensorRef &y) const {
  input.forwardGelu(b, x, s.preact, s.active);
  output.forwardResidual(b, s.active, residual, y);
}

void Mlp::infer(Build &b, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const {
  const TensorRef active = b.take("mlp active", {x.extents[0], 4 * width});
  input.forwardGelu(b, x, {}, active);
  output.forwardResidual(b, active, residual, y);
  b.release(active);
}

void Mlp::backward(Build &b, const TensorRef &dy, const TensorRef &x, const Saved &s, const TensorRef &dx) const {
  output.weightGradient(b, s.active, dy);
  b.release(s.active);
  output.inputGradientGelu(b, dy, s.preact, s.preact);
  input.weightGradient(b, x, s.preact);
  input.inputGradient(b, s.preact, dx);
  b.release(s.preact);
}

} // namespace kiln

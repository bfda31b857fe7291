// A linear layer's launches.

#include "models/nn/linear.h"
#include "kernels/matmul.h"

namespace kiln {

Linear::Linear(ParameterList &list, const LayerNames &names, int64_t in, int64_t out, double deviation)
    : weight(list.add(names.weight, {in, out}, {Init::Kind::normal, deviation})),
      bias(list.add(names.bias, {out}, {Init::Kind::zeros})) {}

void Linear::forward(Build &b, const TensorRef &x, const TensorRef &y) const {
  b.plan += planMatmulBias(b.target, Layout::nn, x, b.value(weight), b.value(bias), y);
}

void Linear::forwardGelu(Build &b, const TensorRef &x, const std::optional<TensorRef> &preact,
                         const TensorRef &y) const {
  b.plan += planMatmulGelu(b.target, Layout::nn, x, b.value(weight), b.value(bias), preact, y);
}

void Linear::forwardResidual(Build &b, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const {
  b.plan += planMatmulResidual(b.target, Layout::nn, x, b.value(weight), b.value(bias), residual, y);
}

void Linear::weightGradient(Build &b, const TensorRef &x, const TensorRef &dy) const {
  b.plan += planWeightGradient(b.target, x, dy, b.gradient(weight), b.gradient(bias), b.accumulate);
}

void Linear::inputGradient(Build &b, const TensorRef &dy, const TensorRef &dx) const {
  b.plan += planMatmul(b.target, Layout::nt, dy, b.value(weight), dx);
}

void Linear::inputGradientGelu(Build &b, const TensorRef &dy, const TensorRef &preact, const TensorRef &dx) const {
  b.plan += planMatmulGeluBackward(b.target, Layout::nt, dy, b.value(weight), preact, dx);
}

} // namespace kiln

// A linear layer's launches.

#include "models/nn/linear.h"

namespace kiln {

Linear::Linear(ParameterList &list, const LayerNames &names, int64_t in, int64_t out, const LinearInit &init,
               LinearOptions options)
    : weight(list.add(names.weight, {in, out}, init.weight, Role::matrix)) {
  if (options.bias)
    bias = list.add(names.bias, {out}, init.bias, Role::bias);
}

void Linear::forward(Build &b, const TensorRef &x, const TensorRef &y, LinearEpilogue epilogue) const {
  if (bias)
    epilogue.bias = b.value(*bias);
  b.plan += planLinear(b.target, Layout::nn, x, b.value(weight), y, epilogue);
}

void Linear::weightGradient(Build &b, const TensorRef &x, const TensorRef &dy) const {
  b.weightGradient({x, dy, b.gradient(weight), bias ? std::optional(b.gradient(*bias)) : std::nullopt});
}

void Linear::inputGradient(Build &b, const TensorRef &dy, const TensorRef &dx, bool add) const {
  b.plan += planMatmul(b.target, Layout::nt, dy, b.value(weight), dx, add);
}

void Linear::inputGradient(Build &b, const TensorRef &dy, const TensorRef &dx, const LinearBackward &backward) const {
  b.plan += planLinearBackward(b.target, Layout::nt, dy, b.value(weight), dx, backward);
}

} // namespace kiln

// LayerNorm's launches.

#include "models/nn/layer_norm.h"
#include "kernels/layernorm.h"

namespace kiln {

LayerNorm::LayerNorm(ParameterList &list, const LayerNames &names, int64_t width, double epsilon)
    : weight(list.add(names.weight, {width}, {Init::Kind::ones})),
      bias(list.add(names.bias, {width}, {Init::Kind::zeros})), epsilon(static_cast<float>(epsilon)) {}

LayerNorm::Saved LayerNorm::take(Build &b, int64_t rows) const {
  TensorRef mean = b.takeStatistics("mean", {rows});
  return {mean, b.takeStatistics("rstd", {rows})};
}

void LayerNorm::release(Build &b, const Saved &saved) const {
  b.release(saved.mean);
  b.release(saved.rstd);
}

void LayerNorm::forward(Build &b, const TensorRef &x, const Saved &saved, const TensorRef &y) const {
  const Scope scope(b, "norm");
  b.plan += planLayerNorm(b.target, x, b.value(weight), b.value(bias), y, saved.mean, saved.rstd, epsilon);
}

void LayerNorm::backward(Build &b, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                         bool add) const {
  const Scope scope(b, "norm");
  b.plan += planLayerNormBackward(b.target, dy, x, b.value(weight), saved.mean, saved.rstd, dx, b.gradient(weight),
                                  b.gradient(bias), {.dx = add, .parameters = b.accumulate});
}

} // namespace kiln

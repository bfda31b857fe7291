// LayerNorm's launches.

#include "models/nn/layer_norm.h"
#include "kernels/layernorm.h"

namespace kiln {

LayerNorm::LayerNorm(ParameterList &list, const LayerNames &names, int64_t width, const NormOptions &options)
    : options(options) {
  if (!options.affine)
    return;
  weight = list.add(names.weight, {width}, {Init::Kind::ones}, Role::gain);
  bias = list.add(names.bias, {width}, {Init::Kind::zeros}, Role::bias);
}

static LayerNormOptions kernelOptions(const NormOptions &o) {
  return {static_cast<float>(o.epsilon), o.ddof, o.epsOutsideSqrt, o.affine};
}

LayerNorm::Saved LayerNorm::take(Build &b, int64_t rows) const {
  TensorRef mean = b.takeStatistics("mean", {rows});
  return {mean, b.takeStatistics("rstd", {rows})};
}

void LayerNorm::release(Build &b, const Saved &saved) const {
  b.release(saved.mean);
  b.release(saved.rstd);
}

void LayerNorm::forward(Build &b, const TensorRef &x, const Saved &saved, const TensorRef &y) const {
  const LaunchScope scope(b, "norm");
  const bool affine = options.affine;
  b.plan += planLayerNorm(b.target, x, affine ? b.value(weight) : x, affine ? b.value(bias) : x, y, saved.mean,
                          saved.rstd, kernelOptions(options));
}

void LayerNorm::backward(Build &b, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                         const std::optional<TensorRef> &residual) const {
  const LaunchScope scope(b, "norm");
  const bool affine = options.affine;
  LayerNormAccumulate adds = {.dx = residual.has_value(), .parameters = b.accumulate, .residual = residual};
  if (affine && b.deferred.isOn()) {
    const int64_t rows = x.extents[0], width = x.extents[1];
    const int64_t parts = layerNormParts(b.target, rows, width, x.type);
    const TensorRef both = b.takeStatistics("norm gradients", {2, b.target.partStride(parts), width});
    adds.parts = both.slice(1, 0, parts);
    b.deferred.add(launchLayerNormSums(b.target, *adds.parts, b.gradient(weight), b.gradient(bias), b.accumulate),
                   both);
  }
  b.plan += planLayerNormBackward(b.target, dy, x, affine ? b.value(weight) : x, saved.mean, saved.rstd, dx,
                                  affine ? b.gradient(weight) : dx, affine ? b.gradient(bias) : dx, adds,
                                  kernelOptions(options));
}

} // namespace kiln

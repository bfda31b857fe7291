// The layers' launches.

#include "models/nn/layers.h"
#include "kernels/activate.h"
#include "kernels/layernorm.h"
#include "models/nn/dropout.h"

namespace kiln {

//===-- Linear layers -------------------------------------------------------------------------------------------===//

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

//===-- LayerNorm -----------------------------------------------------------------------------------------------===//

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

//===-- The MLP -------------------------------------------------------------------------------------------------===//

Mlp::Mlp(ParameterList &list, const MlpNames &names, int64_t width, const MlpOptions &options, const Inits &inits,
         const DropoutOptions &dropout, int64_t context)
    : inner(options.inner > 0 ? options.inner : 4 * width), activation(options.activation),
      input(list, names.input, width, inner, inits.inner(width), options.linear),
      output(list, names.output, inner, width, inits.residual(inner), options.linear),
      activeSite(list, dropout.of(dropout.activation), context),
      residualSite(list, dropout.of(dropout.residual), context) {}

void Mlp::activate(Build &b, Saved &s) const {
  input.forward(b, s.x(b), *s.active,
                {.activation = activation,
                 .preact = keepsPreact() ? std::optional(s.preact.place(b)) : std::nullopt,
                 .dropout = activeSite.in(b)});
}

void Mlp::begin(Build &b, const Reader &x, int64_t batch, int64_t time, Saved &s) const {
  const int64_t rows = batch * time;
  s.x = x;
  // The backward pass first needs the activation's output. Recomputing it also recomputes the pre-activation, or uses
  // it if it is kept.
  const bool isOfPreact = keepsPreact() && !b.recompute.makes(Site::mlp, b.block);
  if (keepsPreact())
    s.preact.take(b, Site::mlp, "mlp preact", {rows, inner}, {});
  s.active.take(b, isOfPreact ? Site::activation : Site::mlp, "mlp active", {rows, inner}, [=, this, &s](Build &b) {
    if (isOfPreact)
      b.plan += planActivate(b.target, activation, *s.preact, *s.active, activeSite.in(b));
    else
      activate(b, s);
  });
  activate(b, s);
}

void Mlp::finish(Build &b, const TensorRef &residual, Saved &s, const TensorRef &y) const {
  output.forward(b, s.active.get(b), y, {.dropout = residualSite.in(b), .residual = residual});
}

void Mlp::drop(Build &b, Saved &s) const {
  if (keepsPreact())
    s.preact.drop(b);
  s.active.drop(b);
}

void Mlp::infer(Build &b, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const {
  const TensorRef active = b.take("mlp active", {x.extents[0], inner});
  input.forward(b, x, active, {.activation = activation, .dropout = activeSite.in(b)});
  output.forward(b, active, y, {.dropout = residualSite.in(b), .residual = residual});
  b.release(active);
}

void Mlp::backward(Build &b, const TensorRef &dy, Saved &s, const TensorRef &dx, bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy);
  output.weightGradient(b, s.active.get(b), dout);
  // The pre-activation's gradient overwrites the tensor that the slope is computed from, if no later launch reads that.
  if (keepsPreact())
    s.active.release(b);
  SavedActivation &from = keepsPreact() ? s.preact : s.active;
  const TensorRef argument = *from;
  const bool isNeeded = b.deferred.reads(argument);
  const TensorRef hidden = isNeeded ? b.take("d mlp", argument.extents) : argument;
  output.inputGradient(b, dout, hidden, {activation, argument, activeSite.in(b)});
  if (isNeeded)
    from.release(b);
  releaseDropped(b, residualSite, dout);
  input.weightGradient(b, s.x(b), hidden);
  input.inputGradient(b, hidden, dx, add);
  isNeeded ? b.release(hidden) : from.release(b);
}

} // namespace kiln

// The feed-forward layer's launches.

#include "models/nn/mlp.h"
#include "kernels/activate.h"
#include "models/nn/residual.h"

namespace kiln {

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

void Mlp::begin(Build &b, const Reader &x, int64_t rows, Saved &s) const {
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

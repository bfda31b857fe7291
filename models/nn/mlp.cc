// The feed-forward layer's launches.

#include "models/nn/mlp.h"
#include "models/nn/residual.h"

namespace kiln {

Mlp::Mlp(ParameterList &list, const MlpNames &names, int64_t width, const MlpOptions &options, const Inits &inits,
         const DropoutOptions &dropout, int64_t context)
    : inner(options.inner > 0 ? options.inner : 4 * width), activation(options.activation),
      input(list, names.input, width, inner, inits.inner(width), options.linear),
      output(list, names.output, inner, width, inits.residual(inner), options.linear),
      activeSite(list, dropout.of(dropout.activation), context),
      residualSite(list, dropout.of(dropout.residual), context) {}

Mlp::Saved Mlp::take(Build &b, int64_t rows) const {
  std::optional<TensorRef> preact;
  if (keepsPreact())
    preact = b.take("mlp preact", {rows, inner});
  return {preact, b.take("mlp active", {rows, inner})};
}

void Mlp::forward(Build &b, const TensorRef &x, const TensorRef &residual, const Saved &s, const TensorRef &y) const {
  input.forward(b, x, s.active, {.activation = activation, .preact = s.preact, .dropout = activeSite.in(b)});
  output.forward(b, s.active, y, {.dropout = residualSite.in(b), .residual = residual});
}

void Mlp::infer(Build &b, const TensorRef &x, const TensorRef &residual, const TensorRef &y) const {
  const Saved saved = {{}, b.take("mlp active", {x.extents[0], inner})};
  forward(b, x, residual, saved, y);
  b.release(saved.active);
}

void Mlp::backward(Build &b, const TensorRef &dy, const TensorRef &x, const Saved &s, const TensorRef &dx,
                   bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy);
  output.weightGradient(b, s.active, dout);
  // The gradient by the inner product takes the place of what its slope is taken from, if nobody needs that any more.
  const TensorRef from = s.preact.value_or(s.active);
  const bool isNeeded = b.gathered.reads(from);
  const TensorRef hidden = isNeeded ? b.take("d mlp", from.extents) : from;
  if (s.preact)
    b.release(s.active);
  output.inputGradient(b, dout, hidden, {activation, from, activeSite.in(b)});
  if (isNeeded)
    b.release(from);
  releaseDropped(b, residualSite, dout);
  input.weightGradient(b, x, hidden);
  input.inputGradient(b, hidden, dx, add);
  b.release(hidden);
}

} // namespace kiln

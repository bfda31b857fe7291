// The residual connection: y = residual + drop(result), and the gradient through the dropout mask.

#pragma once

#include "kernels/dropout.h"
#include "models/nn/dropout.h"

namespace kiln {

/// The gradient at the input of dropout `site` from `dy`, that at its output: in new memory, or `dy` itself without
/// dropout. Release it with releaseDropped().
inline TensorRef takeDropped(Build &b, const DropoutSite &site, const TensorRef &dy) {
  const std::optional<Dropout> dropout = site.in(b);
  if (!dropout)
    return dy;
  const TensorRef masked = b.take("d dropped", dy.extents);
  b.plan += planDropout(b.target, dy, masked, *dropout);
  return masked;
}
inline void releaseDropped(Build &b, const DropoutSite &site, const TensorRef &masked) {
  if (site.drops())
    b.release(masked);
}

} // namespace kiln

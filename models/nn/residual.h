// How a layer's result joins the stream: y = residual + drop(result), and the gradient's way back through the mask.

#pragma once

#include "kernels/dropout.h"
#include "models/nn/dropout.h"

namespace kiln {

/// The gradient of what was dropped at `site` from that of the result, `dy`: in memory of its own, or `dy` itself where
/// nothing is dropped. To be given back by releaseDropped().
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

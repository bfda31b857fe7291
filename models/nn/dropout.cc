// A site's row in the step's table of keys and rates.

#include "models/nn/dropout.h"
#include "kernels/dropout.h"

namespace kiln {

DropoutSite::DropoutSite(ParameterList &list, const DropoutRate &rate, int64_t maxLength)
    : rate(rate), maxLength(maxLength), number(rate.threshold() > 0 ? list.addSite() : -1) {
  verify(rate);
}

std::optional<Dropout> DropoutSite::in(const Build &b) const {
  if (!drops())
    return {};
  return Dropout{rate, b.sites ? std::optional(b.sites->select(0, number).slice(0, 0, 2)) : std::nullopt, b.time,
                 maxLength};
}

TensorRef takeDropped(Build &b, const DropoutSite &site, const TensorRef &dy) {
  const std::optional<Dropout> dropout = site.in(b);
  if (!dropout)
    return dy;
  const TensorRef masked = b.take("d dropped", dy.extents);
  b.plan += planDropout(b.target, dy, masked, *dropout);
  return masked;
}

void releaseDropped(Build &b, const DropoutSite &site, const TensorRef &masked) {
  if (site.drops())
    b.release(masked);
}

} // namespace kiln

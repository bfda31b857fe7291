// A site's row in the step's table of keys and rates.

#include "models/nn/dropout.h"

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

} // namespace kiln

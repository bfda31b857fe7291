// Counts bytes and rounds.

#include "models/parallel/exchange_plan.h"
#include "dialect/dsl/Types.h"

namespace kiln {

ExchangePlan exchangePlan(const Shards &shards, int64_t weightBytes) {
  if (shards.ranks == 1)
    return {};
  const int64_t sent = shards.own() * (shards.ranks - 1);
  // Two rounds for each bucket; the sums of the norm; and the loss, the stop flag before and after a step, and whether
  // the step was recorded.
  return {sent * bytesOf(f32), sent * weightBytes, 2 * shards.buckets() + 5};
}

double ExchangePlan::seconds(double bandwidth, double latency) const {
  return static_cast<double>(bytes()) / bandwidth + static_cast<double>(rounds) * latency;
}

} // namespace kiln

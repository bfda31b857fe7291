// Counting bytes and rounds.

#include "models/parallel/exchange_plan.h"
#include "dialect/dsl/Types.h"

namespace kiln {

ExchangePlan exchangePlan(const Shards &shards, int64_t weightBytes) {
  if (shards.ranks == 1)
    return {};
  const int64_t sent = shards.own() * (shards.ranks - 1);
  // Both for each bucket; the norm's sums; and the loss, whether to stop before and behind a step, and whether it is
  // recorded.
  return {sent * bytesOf(f32), sent * weightBytes, 2 * shards.buckets() + 5};
}

double ExchangePlan::seconds(double bandwidth, double latency) const {
  return static_cast<double>(bytes()) / bandwidth + static_cast<double>(rounds) * latency;
}

} // namespace kiln

// Buckets of equal size; the last may be smaller.

#include "models/parallel/shards.h"
#include "dialect/dsl/Plan.h"
#include "dialect/dsl/Types.h"
#include "kernels/adamw.h"

#include <algorithm>
#include <numeric>

namespace kiln {

//===-- Buckets and pieces --------------------------------------------------------------------------------------===//

Shards Shards::of(int64_t count, int64_t ranks, int64_t bucket) {
  if (ranks == 1)
    return {count, 1, count, std::max<int64_t>(count, 1)};
  const int64_t unit = adamwUnit * ranks;
  return {count, ranks, cdiv(count, unit) * unit, cdiv(bucket > 0 ? bucket : usualBucket, unit) * unit};
}

Piece Shards::whole(int64_t b) const {
  const int64_t begin = b * bucket;
  return {begin, std::min(bucket, padded - begin), begin / ranks};
}

Piece Shards::piece(int64_t b, int64_t rank) const {
  const Piece all = whole(b);
  const int64_t each = all.count / ranks;
  return {all.begin + rank * each, each, all.local};
}

//===-- Traffic -------------------------------------------------------------------------------------------------===//

ExchangePlan exchangePlan(const Shards &shards, int64_t weightBytes) {
  if (shards.ranks == 1)
    return {};
  const int64_t sent = shards.own() * (shards.ranks - 1);
  // Two rounds for each bucket, and the sums of the norm. Then the loss, the stop flag before and after a step, and
  // whether the step was recorded.
  return {sent * bytesOf(f32), sent * weightBytes, 2 * shards.buckets() + 5};
}

double ExchangePlan::seconds(double bandwidth, double latency) const {
  return static_cast<double>(bytes()) / bandwidth + static_cast<double>(rounds) * latency;
}

//===-- Cuts of a plan ------------------------------------------------------------------------------------------===//

/// For each bucket, the number of launches up to the last one that touches it.
static std::vector<size_t> ends(const Plan &plan, const TensorRef &gradient, const Shards &shards) {
  std::vector<size_t> end(shards.buckets(), 0);
  const auto *const memory = static_cast<const char *>(gradient.data);
  const int64_t size = bytesOf(gradient.type), bytes = size * shards.padded;
  const auto touch = [&](const std::vector<Arg> &args, size_t number) {
    for (const Arg &arg : args) {
      if (arg.kind != Arg::Kind::tensor || arg.ref.count() == 0)
        continue;
      int64_t first = 0, last = 0; // offsets in elements
      for (int d = 0; d < arg.ref.rank(); ++d)
        (arg.ref.strides[d] < 0 ? first : last) += (arg.ref.extents[d] - 1) * arg.ref.strides[d];
      const int64_t at = static_cast<const char *>(arg.ref.data) - memory, width = bytesOf(arg.ref.type),
                    from = std::max<int64_t>(0, at + first * width), to = std::min(bytes, at + (last + 1) * width);
      for (int64_t b = from / size / shards.bucket; from < to && b * shards.bucket * size < to; ++b)
        end[b] = number;
    }
  };
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    touch(plan.launches[i].args, i + 1);
    for (const Launch::Problem &other : plan.launches[i].others)
      touch(other.args, i + 1);
  }
  return end;
}

std::vector<int64_t> orderOfBuckets(const Plan &plan, const TensorRef &gradient, const Shards &shards) {
  const std::vector<size_t> end = ends(plan, gradient, shards);
  std::vector<int64_t> order(end.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return end[a] < end[b]; });
  return order;
}

std::vector<PlanPart> cutAtBuckets(const Plan &plan, const TensorRef &gradient, const Shards &shards,
                                   const std::vector<int64_t> &order) {
  const std::vector<size_t> end = ends(plan, gradient, shards);
  std::vector<PlanPart> parts;
  size_t done = 0;
  const auto take = [&](size_t to) {
    PlanPart &part = parts.emplace_back();
    part.plan.workspaceBytes = plan.workspaceBytes;
    part.plan.launches.assign(plan.launches.begin() + static_cast<int64_t>(done),
                              plan.launches.begin() + static_cast<int64_t>(to));
    done = to;
  };
  for (const int64_t bucket : order) {
    if (end[bucket] > done || parts.empty())
      take(std::max(end[bucket], done));
    ++parts.back().buckets;
  }
  if (done < plan.launches.size())
    take(plan.launches.size());
  return parts;
}

} // namespace kiln

// The positions at which a plan is cut so that buckets of its gradients are complete.

#include "kernels/adamw.h"
#include "models/parallel/shards.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

constexpr int64_t bucket = 2 * adamwUnit;

/// Three buckets of two ranks, at an address that is never read.
struct Buckets {
  const Shards shards = Shards::of(3 * bucket, 2, bucket);
  const TensorRef gradient = TensorRef::dense(reinterpret_cast<void *>(0x10000), f32, {shards.padded});

  /// A launch on some of the elements.
  Launch on(int64_t begin, int64_t count) const {
    Launch launch;
    launch.args = {gradient.slice(0, begin, count)};
    return launch;
  }
  Launch elsewhere() const {
    Launch launch;
    launch.args = {TensorRef::dense(reinterpret_cast<void *>(0x10), f32, {4}), 2.0f};
    return launch;
  }
};

/// The number of launches of each part, and of its buckets.
std::vector<std::pair<int64_t, int64_t>> sizesOf(const std::vector<PlanPart> &parts) {
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const PlanPart &part : parts)
    sizes.emplace_back(std::ssize(part.plan.launches), part.buckets);
  return sizes;
}

using Sizes = std::vector<std::pair<int64_t, int64_t>>;

// A bucket is complete after the last launch that touches it, for any order of buckets.
TEST(ExchangeCuts, ABucketIsWholeBehindItsLastLaunch) {
  const Buckets b;
  Plan plan;
  plan.launches = {b.on(2 * bucket, 10), b.on(3 * bucket - 1, 1), b.on(0, 5),
                   b.elsewhere(),        b.on(bucket + 7, 1),     b.elsewhere()};
  const std::vector<int64_t> order = orderOfBuckets(plan, b.gradient, b.shards);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(sizesOf(cutAtBuckets(plan, b.gradient, b.shards, order)), (Sizes{{2, 1}, {1, 1}, {2, 1}, {1, 0}}));
}

// A launch that touches two holds both.
TEST(ExchangeCuts, ALaunchOnTwoHoldsBoth) {
  const Buckets b;
  Plan plan;
  plan.launches = {b.on(0, 1), b.on(2 * bucket, 1), b.on(bucket - 1, 2), b.elsewhere()};
  const std::vector<int64_t> order = orderOfBuckets(plan, b.gradient, b.shards);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(sizesOf(cutAtBuckets(plan, b.gradient, b.shards, order)), (Sizes{{2, 1}, {1, 2}, {1, 0}}));
}

// All arguments of a launch count, and so do strided elements.
TEST(ExchangeCuts, AllArgumentsCount) {
  const Buckets b;
  Plan plan;
  Launch besides = b.elsewhere(), apart = b.elsewhere();
  besides.others.push_back({{1, 1, 1}, {b.gradient.slice(0, 2 * bucket, 1)}, 0});
  TensorRef strided = b.gradient.slice(0, 0, 2);
  strided.strides = {bucket};
  apart.args = {strided};
  plan.launches = {b.on(0, 1), b.on(bucket, 1), besides, apart};
  EXPECT_EQ(orderOfBuckets(plan, b.gradient, b.shards), (std::vector<int64_t>{2, 0, 1}));
}

// The order is the caller's, even if a plan completes buckets in another one: all ranks exchange in one order.
TEST(ExchangeCuts, KeepsAnOrderThatIsGiven) {
  const Buckets b;
  Plan plan;
  plan.launches = {b.on(0, 1), b.on(bucket, 1), b.on(2 * bucket, 1)};
  EXPECT_EQ(sizesOf(cutAtBuckets(plan, b.gradient, b.shards, {2, 1, 0})), (Sizes{{3, 3}}));
  EXPECT_EQ(sizesOf(cutAtBuckets(plan, b.gradient, b.shards, {1, 0, 2})), (Sizes{{2, 2}, {1, 1}}));
}

} // namespace

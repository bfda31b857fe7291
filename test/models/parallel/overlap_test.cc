// A trainer on several GPUs: ranks exchange buckets of gradients during the backward pass, and have the bits of
// training without overlap.

#include "kernels/adamw.h"
#include "models/parallel/shards.h"
#include "test/models/nn/decoder_model.h"
#include "test/models/parallel/nccl_stubs.h"
#include "test/models/parallel/process_ranks.h"
#include "test/runtime/cuda/stub_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int64_t micros = 4, time = 5;

/// Ranks of a test, which outlive the trainers that refer to them.
std::shared_ptr<Collective> held(Collective &ranks) {
  return {&ranks, [](Collective *) {}};
}

class Overlap : public NcclStubs {
protected:
  Overlap() {
    options.block.attention.heads = 2;
    settings.batch = 1;
    settings.accumulate = micros;
    settings.bucket = 1; // the smallest there is
  }
  /// Some steps on a rank's GPU; returns the operations of the streams, from the stub driver, and the final state.
  std::pair<std::vector<std::string>, HostBuffers> train(Collective &ranks, int64_t steps) const {
    forgetCompiled(); // kernels keep their context
    const StubControls &stub = useStub();
    const DecoderModel model(options);
    const auto device = Device::open(fmt::format("cuda:{}", ranks.rank()));
    Trainer trainer(device, model, settings, {{1, time}}, held(ranks));
    trainer.initialize(5);
    std::vector<std::string> orders;
    for (int64_t step = 1; step <= steps; ++step) {
      const DecoderBatch batch = randomBatch(options, micros, time, static_cast<uint32_t>(step));
      const size_t before = std::string(stub.order()).size();
      trainer.beginStep(1e-3, step, presentIn(batch));
      for (int64_t micro = 0; micro < micros; ++micro)
        if (micro % ranks.size() == ranks.rank())
          trainer.addGradient(makeInputs(batch, micro, 1), micro);
        else
          trainer.leaveOut(1);
      trainer.update();
      orders.push_back(std::string(stub.order()).substr(before));
    }
    return {orders, trainer.download()};
  }

  DecoderOptions options = {.layers = 2, .width = 32, .context = time, .vocab = 11};
  TrainSettings settings;
};

/// The launches on the first stream between each exchange and the next.
std::vector<int64_t> launchesBetween(const std::string &order) {
  std::vector<int64_t> between;
  int64_t launches = -1; // before the first one
  std::istringstream lines(order);
  for (std::string line; std::getline(lines, line);) {
    if (line == "stream 1 ncclGroupEnd") {
      if (launches >= 0)
        between.push_back(launches);
      launches = 0;
    } else if (launches >= 0 && (line == "stream 0 cuLaunchKernel" || line == "stream 0 cuGraphLaunch")) {
      ++launches;
    }
  }
  return between;
}

// Between some two exchanges, the first stream has launches of the backward pass, in addition to the one that adds the
// received data. In the first step these are single launches, and in the third, graphs.
TEST_F(Overlap, ExchangesWhileTheBackwardPassGoesOn) {
  const std::vector<int> statuses = ProcessRanks::run(2, [&](Collective &ranks) {
    const auto [orders, buffers] = train(ranks, 3);
    const int64_t buckets = Shards::of(DecoderModel(options).parameters().count(), 2, settings.bucket).buckets();
    ASSERT_GT(buckets, 3);
    for (const size_t step : {0, 2}) {
      const std::vector<int64_t> between = launchesBetween(orders[step]);
      ASSERT_EQ(std::ssize(between), buckets - 1) << orders[step];
      const int64_t behind = std::count_if(between.begin(), between.end(), [](int64_t n) { return n > 1; });
      EXPECT_GT(behind, 0) << orders[step];
    }
  });
  EXPECT_EQ(statuses, std::vector<int>(2, 0));
}

// The bits are those of ranks that exchange through the host's memory, while nothing runs.
TEST_F(Overlap, ChangesNoBit) {
  for (const double skip : {0.0, 50.0}) { // with it ranks exchange all before they judge
    settings.skipLossZ = skip;
    const std::vector<int> statuses = ProcessRanks::run(2, [&](Collective &ranks) {
      const HostBuffers direct = train(ranks, 3).second;
      ::setenv("KILN_NCCL", "", 1);
      const HostBuffers staged = train(ranks, 3).second;
      EXPECT_EQ(direct.values, staged.values);
      EXPECT_EQ(direct.first, staged.first);
      EXPECT_EQ(direct.second, staged.second);
    });
    EXPECT_EQ(statuses, std::vector<int>(2, 0));
  }
}

// --- The positions at which a plan is cut so that buckets of its gradients are complete ------------------------------

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

// Memory budgets: allocations equal the plan, and the choice within a budget recomputes least.

#include "models/gpt2/network.h"
#include "models/nn/arena.h"
#include "models/train/memory.h"
#include "models/train/trainer.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/forwarding_device.h"

using namespace kiln;

namespace {

/// Another device, with its allocated bytes recorded.
class Counter : public test::ForwardingDevice {
public:
  using ForwardingDevice::ForwardingDevice;
  void *allocate(int64_t bytes) override {
    allocated += bytes;
    return ForwardingDevice::allocate(bytes);
  }
  int64_t allocated = 0;
};

Gpt2Config small(double dropout = 0, Type type = f32) {
  Gpt2Config config = {4, 2, 32, 32, 600}; // layers, heads, width, context, vocabulary
  config.dropout = {dropout, dropout, dropout, dropout};
  config.type = type;
  return config;
}

// Exactly: with keys of dropout, masters, gradients in f32, and several micro-batches, and after a step and an
// evaluation as well.
TEST(MemoryCandidate, APlanIsWhatIsAllocated) {
  for (const Type type : {f32, bf16})
    for (const int64_t several : {1, 2})
      for (const char *policy : {"none", "block"}) {
        const Network network(small(several == 2 ? 0.1 : 0, type));
        TrainSettings settings = {.batch = 2, .accumulate = several, .lossChunks = several};
        settings.type = type;
        settings.skipNormZ = several == 2 ? 3 : 0;
        settings.recompute = recomputeNamed("recompute", policy);
        const auto device = std::make_shared<Counter>(Device::open("cpu"));
        Trainer trainer(device, network, settings);
        trainer.initialize(1);
        const HostBatch batch = languageBatch(std::vector<int32_t>(64, 3), std::vector<int32_t>(64, 5));
        trainer.beginStep(1e-3, 1);
        for (int64_t micro = 0; micro < several; ++micro)
          trainer.addGradient(batch, micro);
        trainer.update();
        trainer.lossSum(batch);
        EXPECT_EQ(device->allocated, planMemory(device->target(), network, network.shape(2), settings).total())
            << nameOf(type) << " " << several << " " << policy;
      }
}

// With several shapes, allocations equal the plan, which includes the loss chunks of the shorter ones.
TEST(MemoryCandidate, APlanOfSeveralShapesIsWhatIsAllocated) {
  for (const int64_t chunks : {1, 3}) {
    const Network network(small());
    const TrainSettings settings = {.batch = 2, .lossChunks = chunks};
    const BatchShape longest = network.shape(2);
    const auto device = std::make_shared<Counter>(Device::open("cpu"));
    const Trainer trainer(device, network, settings, {longest, {2, 16}});
    EXPECT_EQ(device->allocated, planMemory(chooseTarget(*device, settings, 2), network, longest, settings).total())
        << chunks;
  }
}

class Ways : public testing::Test {
protected:
  const std::shared_ptr<Device> device = Device::open("cpu");
  const Network network = Network(small());
  const TrainSettings settings = {.batch = 16};
  const MemoryPlanner planner = MemoryPlanner(device->target(), network, network.shape(16), settings);
};

// The less memory there is, the more the choice recomputes. It never exceeds the budget, and the plan of its settings
// has the reported size. With all memory nothing is recomputed, and below the least there is no choice.
TEST_F(Ways, ABudgetGetsTheLeastWorkThatFits) {
  const MemoryCandidate all = planner.at(0, 1), least = planner.least();
  ASSERT_LT(least.bytes, all.bytes / 2);
  double work = std::numeric_limits<double>::infinity();
  for (int64_t k = 0; k <= 16; ++k) {
    const int64_t bytes = least.bytes + (all.bytes - least.bytes) * k / 16;
    const std::optional<MemoryCandidate> candidate = planner.within(bytes);
    ASSERT_TRUE(candidate) << k;
    EXPECT_LE(candidate->bytes, bytes) << k;
    EXPECT_LE(candidate->work, work) << k;
    EXPECT_EQ(planMemory(device->target(), network, network.shape(16), planner.with(*candidate)).total(),
              candidate->bytes);
    work = candidate->work;
  }
  EXPECT_EQ(planner.within(all.bytes)->recompute, Recompute());
  EXPECT_EQ(planner.within(all.bytes)->lossChunks, 1);
  EXPECT_FALSE(planner.within(least.bytes - 1));
}

// Tensors that are cheapest for their size are dropped first: in a wide model those of norms and activations, which no
// GEMM computes. The first blocks are dropped before the others.
TEST_F(Ways, NormsAndActivationsAreMadeAgainFirst) {
  const Network wide({4, 12, 768, 64, 600});
  const MemoryPlanner ways(device->target(), wide, wide.shape(8), settings);
  EXPECT_EQ(nameOf(ways.at(2 * 4, 1).recompute), "norms,activation");
  EXPECT_EQ(nameOf(ways.at(ways.steps(), 1).recompute), "block");
  const std::string some = nameOf(ways.at(6, 1).recompute);
  EXPECT_TRUE(some == "norms,activation:2" || some == "norms:2,activation") << some;
}

// The error names a budget that then is enough.
TEST_F(Ways, AnImpossibleBudgetNamesTheLeastThatWorks) {
  const auto fitTo1000 = [&] { fitToMemory(*device, network, settings, {1000}); };
  errorOf(fitTo1000); // what planning itself needs is part of the process from now on
  const std::string text = errorOf(fitTo1000);
  EXPECT_NE(text.find(", but got 1 MiB; a smaller --batch requires less (plan "), std::string::npos) << text;
  const std::string before = "expected '--memory' of at least ";
  ASSERT_EQ(text.find(before), 0u) << text;
  const std::string least = text.substr(before.size(), text.find(" for this model") - before.size());
  EXPECT_NO_THROW(fitToMemory(*device, network, settings, budgetNamed("--memory", least))) << least;
}

// On a GPU, auto is nine tenths of the free memory that its driver reports: of 8 GiB on this one.
TEST_F(Ways, AutoAsksTheDriver) {
  ::setenv("KILN_CUDA_DRIVER", test::stubDriver().c_str(), 1);
  const FittedSettings fit = fitToMemory(*Device::open("cuda:0"), network, settings, {});
  EXPECT_NE(fit.note.find(" of 7.21 GiB: --recompute "), std::string::npos) << fit.note;
  EXPECT_EQ(fit.settings.recompute, Recompute());
}

TEST(MemoryBudget, SizesHaveUnits) {
  EXPECT_EQ(budgetNamed("--memory", "auto"), MemoryBudget());
  for (const auto &[text, bytes] : std::vector<std::pair<std::string, int64_t>>{{"6GiB", int64_t{6} << 30},
                                                                                {"1.5 GiB", int64_t{3} << 29},
                                                                                {"800MiB", int64_t{800} << 20},
                                                                                {"64KiB", 65536},
                                                                                {"2TiB", int64_t{2} << 40},
                                                                                {"6GB", 6000000000},
                                                                                {"7MB", 7000000},
                                                                                {"9kB", 9000},
                                                                                {"0.5TB", 500000000000}})
    EXPECT_EQ(budgetNamed("--memory", text).bytes, bytes) << text;
  for (const char *text : {"", "6", "GiB", "-1GiB", "0GiB", "6gib", "6GiB ", "6GiBs", "infGiB", "1e30GiB", "all"})
    EXPECT_EQ(errorOf([&] { budgetNamed("--memory", text); }),
              std::string("'") + text +
                  "' is no size for '--memory'; expected auto, or a number of KiB, MiB, GiB, TiB, kB, MB, GB or TB "
                  "such as 6GiB");
  EXPECT_EQ(sizeText(1), "1 MiB");
  EXPECT_EQ(sizeText((int64_t{1} << 30) + 1), "1.01 GiB");
}

// --- The memory planner of a step: measuring lifetimes, and assigning offsets ----------------------------------------

int64_t offsetOf(const TensorRef &t) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data)); }

/// Two small buffers, one after the other, during the lifetime of a large one, and one more at the end.
std::vector<TensorRef> build(Arena &arena) {
  std::vector<TensorRef> all = {arena.take("large", f32, {1000}), arena.take("first", f32, {64})};
  arena.release(all[1]);
  all.push_back(arena.take("second", f32, {3}));
  arena.release(all[0]);
  all.push_back(arena.take("last", i8, {1}));
  arena.release(all[2]);
  arena.release(all[3]);
  return all;
}

// A buffer's lifetime is from its first use to the last use before its release. Buffers that are never alive together
// share bytes, so the total is the large buffer of 4096 bytes and a small one.
TEST(Arena, PlansByLifetimes) {
  Arena arena;
  build(arena);
  const ArenaPlan plan = arena.plan();
  ASSERT_EQ(plan.entries.size(), 4u);
  const std::pair<int64_t, int64_t> lives[] = {{0, 3}, {1, 2}, {2, 4}, {3, 4}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::pair(plan.entries[i].begin, plan.entries[i].end), lives[i]) << i;
    EXPECT_EQ(plan.entries[i].bytes, i == 0 ? 4096 : 256) << i;
    EXPECT_EQ(plan.entries[i].offset % 256, 0) << i;
  }
  EXPECT_EQ(plan.bytes, 4096 + 256);
}

// A build with the plan gets its offsets, from any base address.
TEST(Arena, GivesOutThePlannedPlaces) {
  Arena measured;
  build(measured);
  const ArenaPlan plan = measured.plan();
  for (const uintptr_t base : {uintptr_t{0}, uintptr_t{1} << 40}) {
    Arena arena(plan, reinterpret_cast<void *>(base));
    const std::vector<TensorRef> got = build(arena);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(offsetOf(got[i]), static_cast<int64_t>(base) + plan.entries[i].offset) << i;
  }
}

// A buffer that is never released shares its memory with no later buffer.
TEST(Arena, WhatIsKeptIsKeptToTheEnd) {
  Arena arena;
  arena.take("a", f32, {64});
  arena.take("b", f32, {64});
  EXPECT_EQ(arena.plan().bytes, 512);
}

TEST(Arena, AnotherBuildThanThePlannedOneIsAnError) {
  Arena measured;
  measured.take("a", f32, {64});
  const ArenaPlan plan = measured.plan();
  Arena larger(plan, nullptr), longer(plan, nullptr);
  expectError([&] { larger.take("a", f32, {65}); }, {"took buffer 0 ('a') of 512 bytes", "not the planned one"});
  longer.take("a", f32, {64});
  expectError([&] { longer.take("b", f32, {64}); }, {"took buffer 1 ('b')"});
}

TEST(Arena, ReleasingTwiceIsAnError) {
  Arena arena;
  const TensorRef a = arena.take("a", f32, {64});
  arena.release(a);
  expectError([&] { arena.release(a); }, {"not in use"});
}

} // namespace

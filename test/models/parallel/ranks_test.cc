// Ranks that train one model, as threads. Their results equal those of one rank, except for the order of sums. Each
// stores its share of the optimiser's state, and checkpoints do not depend on the number of ranks.

#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/parallel/shards.h"
#include "models/train/checkpoint.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/forwarding_device.h"
#include "test/models/nn/decoder_model.h"
#include "test/models/parallel/thread_ranks.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using kiln::test::ThreadRanks;

namespace {

constexpr int64_t sequences = 8, micros = 4, time = 9;

DecoderOptions dropping() {
  DecoderOptions o = {.layers = 2, .width = 24, .context = time, .vocab = 11};
  o.block.attention.heads = 3;
  o.dropout = {0.1, 0.1, 0.1, 0.1, DropoutKind::inverted};
  return o;
}

/// The state of training after some steps.
struct Trained {
  HostBuffers buffers;
  std::vector<StepResult> steps;
};

/// ‖a − b‖ / ‖b‖.
double difference(const std::vector<float> &a, const std::vector<float> &b) {
  double squares = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    squares += std::pow(static_cast<double>(a.at(i)) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(squares / size);
}

class RanksTest : public DeviceTest {
protected:
  /// `count` steps of four micro-batches on so many ranks; each has the micro-batch of its number and every size-th
  /// after it.
  Trained train(const DecoderModel &model, TrainSettings s, int size, int64_t count) {
    s.batch = sequences / micros;
    s.accumulate = micros;
    Trained result;
    ThreadRanks::run(size, [&](const std::shared_ptr<Collective> &ranks) {
      Trainer trainer(Device::open(GetParam()), model, s, {{s.batch, time}}, ranks);
      trainer.initialize(5);
      if (scale)
        trainer.setLossScale({*scale, 0});
      trainer.setOutlierWindow(window);
      std::vector<StepResult> steps;
      for (int64_t step = 1; step <= count; ++step) {
        const DecoderBatch batch = batchOf(model, step);
        trainer.beginStep(1e-3, step, presentIn(batch));
        for (int64_t micro = 0; micro < micros; ++micro)
          if (micro % size == ranks->rank())
            trainer.addGradient(makeInputs(batch, micro * s.batch, s.batch), micro);
          else
            trainer.leaveOut(s.batch);
        steps.push_back(trainer.update());
      }
      const HostBuffers buffers = trainer.download(); // which all take part in
      const auto norm = static_cast<float>(steps.back().gradientNorm);
      for (const double other : ranks->gathered(std::bit_cast<int32_t>(norm))) // what one knows all know
        EXPECT_EQ(other, std::bit_cast<int32_t>(norm));
      if (ranks->isFirst())
        result = {buffers, steps};
    });
    return result;
  }
  virtual DecoderBatch batchOf(const DecoderModel &model, int64_t step) {
    DecoderBatch batch = randomBatch(model.options, sequences, time, static_cast<uint32_t>(step));
    if (onlyOfSecond) // the first rank of two has no target
      for (int64_t i = 0; i < sequences * time; ++i)
        if (i / time / (sequences / micros) % 2 == 0)
          batch.targets[i] = ignoredTarget;
    return batch;
  }

  std::optional<double> scale;
  std::vector<float> window; // of outliers
  bool onlyOfSecond = false;
};

// Two ranks with two micro-batches each, and three of which one has two, take the step of one with four. The loss is
// equal. Gradients (the first moment is a multiple of them) differ by the order of four f32 sums, for every type of
// model, with dropout and missing targets.
TEST_P(RanksTest, AStepIsThatOfOneRank) {
  for (const Type type : {f32, bf16, f16}) {
    const DecoderModel model(dropping(), type);
    const Trained one = train(model, settingsOf(2), 1, 1);
    for (const int size : {2, 3}) {
      const Trained several = train(model, settingsOf(2), size, 1);
      EXPECT_NEAR(several.steps[0].loss, one.steps[0].loss, 1e-6 * one.steps[0].loss);
      EXPECT_NEAR(several.steps[0].gradientNorm, one.steps[0].gradientNorm, 1e-6 * one.steps[0].gradientNorm);
      EXPECT_LE(difference(several.buffers.first, one.buffers.first), 1e-6) << nameOf(type) << " " << size;
    }
  }
}

// So do later steps, within the precision of the weights: an update is rounded to it, and a difference of an ulp in one
// step becomes one of at most so many ulps of the loss later.
TEST_P(RanksTest, StepsThatFollowAreThoseOfOneRank) {
  for (const auto &[type, unit] : {std::pair{f32, 1e-6}, {bf16, 0x1p-8}, {f16, 0x1p-11}}) {
    const DecoderModel model(dropping(), type);
    const Trained one = train(model, settingsOf(2), 1, 4), two = train(model, settingsOf(2), 2, 4);
    for (size_t i = 0; i < one.steps.size(); ++i)
      EXPECT_NEAR(two.steps[i].loss, one.steps[i].loss, unit * one.steps[i].loss) << nameOf(type) << " " << i;
  }
}

// Two runs with an equal number of ranks have equal bits.
TEST_P(RanksTest, TwoRunsAreTheSame) {
  const DecoderModel model(dropping(), bf16);
  const Trained once = train(model, settingsOf(2), 3, 3), again = train(model, settingsOf(2), 3, 3);
  EXPECT_EQ(once.buffers.values, again.buffers.values);
  EXPECT_EQ(once.buffers.first, again.buffers.first);
  EXPECT_EQ(once.buffers.second, again.buffers.second);
}

// An overflow in the micro-batches of one rank skips the update on all ranks.
TEST_P(RanksTest, AnOverflowIsOneOfAll) {
  const DecoderModel model(dropping(), f16);
  onlyOfSecond = true;
  scale = 0x1p24;
  const Trained two = train(model, settingsOf(2), 2, 1);
  EXPECT_FALSE(two.steps[0].applied);
  EXPECT_TRUE(std::isfinite(two.steps[0].loss));
  EXPECT_EQ(two.buffers.first, std::vector<float>(two.buffers.first.size(), 0));
  scale = 1;
  EXPECT_TRUE(train(model, settingsOf(2), 2, 1).steps[0].applied);
}

// An outlier is found by the loss of all micro-batches of the step, of which a rank has only a part, and the step is
// skipped on all.
TEST_P(RanksTest, WhatStandsOutDoesSoForAll) {
  const DecoderModel model(dropping(), f32);
  const double loss = train(model, settingsOf(2), 1, 1).steps[0].loss;
  TrainSettings s = settingsOf(2);
  s.skipLossZ = 5;
  window.assign(3 * outlierWindow, 1);
  for (int64_t i = 0; i < outlierWindow; ++i)
    window[i] = static_cast<float>(loss * (i % 2 ? 0.899 : 0.901));
  window[2 * outlierWindow] = outlierWindow; // it is full
  for (const int size : {1, 2, 3}) {
    const Trained left = train(model, s, size, 1);
    EXPECT_TRUE(left.steps[0].isOutlier) << size;
    EXPECT_GT(left.steps[0].lossZ, s.skipLossZ) << size;
    EXPECT_NEAR(left.steps[0].loss, loss, 1e-6 * loss) << size;
    EXPECT_EQ(left.buffers.first, std::vector<float>(left.buffers.first.size(), 0)) << size;
  }
}

// Narrow weights without masters are rounded by the random number of their element in the whole, on any rank. All are
// equal, except those whose random number is between two roundings of the gradient.
TEST_P(RanksTest, ChancesAreThoseOfTheWhole) {
  const DecoderModel model(dropping(), bf16);
  TrainSettings s = settingsOf(2);
  s.master = false;
  s.rounding = WeightRounding::stochastic;
  const Trained one = train(model, s, 1, 1), two = train(model, s, 2, 1);
  const int64_t count = model.parameters().count();
  int64_t others = 0;
  for (int64_t i = 0; i < count; ++i)
    others += std::memcmp(&one.buffers.values[2 * i], &two.buffers.values[2 * i], 2) != 0;
  EXPECT_LE(others, count / 100);
}

/// A device that counts the bytes that are allocated on it.
class Counting : public ForwardingDevice {
public:
  using ForwardingDevice::ForwardingDevice;
  void *allocate(int64_t bytes) override {
    allocated += bytes;
    return ForwardingDevice::allocate(bytes);
  }
  int64_t allocated = 0;
};

// A rank has its share of the moments and of the masters, and its allocations equal the plan.
TEST_P(RanksTest, MomentsAreShared) {
  DecoderOptions o = dropping();
  o.width = 96;
  const DecoderModel model(o, bf16);
  TrainSettings s = settingsOf(2);
  s.accumulate = 2;
  const std::shared_ptr<Device> opened = Device::open(GetParam());
  const Target &target = opened->target();
  const MemoryPlan alone = planMemory(target, model, {2, time}, s);
  ThreadRanks::run(4, [&](const std::shared_ptr<Collective> &ranks) {
    const auto device = std::make_shared<Counting>(Device::open(GetParam()));
    const Trainer trainer(device, model, s, {{2, time}}, ranks);
    const MemoryPlan plan = planMemory(target, model, {2, time}, s, 4);
    EXPECT_EQ(device->allocated, plan.total());
    EXPECT_LE(plan.moments, alone.moments / 4 + 2 * adamwUnit * bytesOf(f32));
    EXPECT_LE(plan.masters, alone.masters / 4 + adamwUnit * bytesOf(f32));
  });
}

// A checkpoint of two ranks is, bit for bit, that which three ranks, and one, resume from and save again.
TEST_P(RanksTest, CheckpointsAreForAnyNumberOfRanks) {
  const TemporaryFolder folder;
  const DecoderModel model(dropping(), bf16);
  TrainSettings s = settingsOf(2);
  s.keep = 9;
  const auto save = [&](int size, int64_t step, const std::function<void(Trainer &)> &begin) {
    ThreadRanks::run(size, [&](const std::shared_ptr<Collective> &ranks) {
      Trainer trainer(Device::open(GetParam()), model, s, {{2, time}}, ranks);
      begin(trainer);
      EXPECT_TRUE(trainer.share(
          [&](const BufferSource &from) { saveCheckpoint(folder.path, {.settings = s, .step = step}, model, from); }));
    });
  };
  save(2, 1, [&](Trainer &trainer) { trainer.upload(randomBuffers(model.parameters(), 1)); });
  for (const int size : {3, 1}) {
    save(size, size + 1, [&](Trainer &trainer) {
      readBuffers(checkpointPath(folder.path, 1), model, trainer.keptType(), trainer.sink());
    });
    const HostBuffers first = readBuffers(checkpointPath(folder.path, 1), model),
                      second = readBuffers(checkpointPath(folder.path, size + 1), model);
    EXPECT_EQ(first.values, second.values) << size;
    EXPECT_EQ(first.first, second.first) << size;
    EXPECT_EQ(first.second, second.second) << size;
  }
}

// If a save fails on the first rank, the others continue.
TEST_P(RanksTest, ASaveThatFailsIsToldToAll) {
  const DecoderModel model(dropping());
  ThreadRanks::run(2, [&](const std::shared_ptr<Collective> &ranks) {
    Trainer trainer(Device::open(GetParam()), model, settingsOf(2), {{2, time}}, ranks);
    const auto fails = [&](const BufferSource &) { throw Error("no space", Fault::device); };
    if (ranks->isFirst())
      EXPECT_THROW(trainer.share(fails), Error);
    else
      EXPECT_FALSE(trainer.share(fails));
    EXPECT_TRUE(trainer.share([](const BufferSource &) {}));
  });
}

KILN_ON_DEVICES(RanksTest);

// A model of several buckets.
TEST(Ranks, SeveralBucketsAreOneModel) {
  DecoderOptions o = {.layers = 2, .width = 512, .context = time, .vocab = 11};
  o.block.attention.heads = 8;
  const DecoderModel model(o);
  ASSERT_GT(Shards::of(model.parameters().count(), 2).buckets(), 1);
  TrainSettings s = settingsOf(1);
  s.accumulate = 2;
  const DecoderBatch batch = randomBatch(o, 2, time, 1);
  std::vector<HostBuffers> all;
  for (const int size : {1, 2})
    ThreadRanks::run(size, [&](const std::shared_ptr<Collective> &ranks) {
      Trainer trainer(Device::open("cpu"), model, s, {{1, time}}, ranks);
      trainer.initialize(5);
      trainer.beginStep(1e-3, 1, presentIn(batch));
      for (int64_t micro = ranks->rank(); micro < 2; micro += size)
        trainer.addGradient(makeInputs(batch, micro, 1), micro);
      trainer.update();
      const HostBuffers buffers = trainer.download();
      if (ranks->isFirst())
        all.push_back(buffers);
    });
  EXPECT_LE(difference(all[1].first, all[0].first), 1e-6);
  EXPECT_LE(difference(all[1].second, all[0].second), 2e-6);
}

// --- Collective operations, on ranks that are threads ----------------------------------------------------------------

// A single rank exchanges with itself, and gathers its own value.
TEST(Collective, OneIsAlone) {
  const std::shared_ptr<Collective> one = aloneCollective();
  const std::vector<int> sent = {1, 2, 3};
  std::vector<int> received(3, 0);
  one->exchange(sent.data(), received.data(), sizeof(int) * 3);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(one->sum(2.5), 2.5);
  EXPECT_FALSE(one->any(false));
  EXPECT_EQ(one->broadcast("text"), "text");
  one->expectSame("model", "any");
}

// A sum adds the ranks in order, with equal bits on all of them, for any cancellation.
TEST(Collective, SumsAreInTheOrderOfRanks) {
  const std::vector<double> numbers = {1e16, 1, -1e16, 3};
  double want = 0;
  for (const double number : numbers)
    want += number;
  ThreadRanks::run(4, [&](const std::shared_ptr<Collective> &ranks) {
    EXPECT_EQ(ranks->gathered(numbers[ranks->rank()]), numbers);
    EXPECT_EQ(ranks->sum(numbers[ranks->rank()]), want);
  });
}

TEST(Collective, WhatOneSaysAllKnow) {
  ThreadRanks::run(3, [](const std::shared_ptr<Collective> &ranks) {
    EXPECT_TRUE(ranks->any(ranks->rank() == 2));
    EXPECT_FALSE(ranks->any(false));
    EXPECT_EQ(ranks->broadcast(std::string(ranks->rank() + 1, 'x')), "x");
  });
}

// If ranks disagree, the error names the rank and both values.
TEST(Collective, UnequalRanksAreNamed) {
  ThreadRanks::run(3, [](const std::shared_ptr<Collective> &ranks) {
    ranks->expectSame("data", "7 bytes");
    expectError([&] { ranks->expectSame("data", ranks->rank() == 1 ? "8 bytes" : "7 bytes"); },
                {"expected all 3 ranks to have the same data, but rank 0 has 7 bytes and rank 1 has 8 bytes"});
  });
}

// A rank that ends with an error ends those that wait for it.
TEST(Collective, NobodyWaitsForOneThatEnded) {
  EXPECT_THROW(ThreadRanks::run(3,
                                [](const std::shared_ptr<Collective> &ranks) {
                                  if (ranks->rank() == 1)
                                    throw std::runtime_error("ended");
                                  ranks->barrier();
                                }),
               std::runtime_error);
}

// --- Who has which elements of a flat buffer -------------------------------------------------------------------------

// Every element, including padding, is in one piece. A rank's pieces are contiguous. All ranks have equally many, less
// than a unit more than their share.
TEST(Shards, EachElementHasOneRank) {
  for (const int64_t count : {int64_t{1}, int64_t{2048}, int64_t{5000}, int64_t{4194305}, int64_t{13000000}})
    for (const int64_t ranks : {2, 3, 8}) {
      const Shards shards = Shards::of(count, ranks);
      EXPECT_GE(shards.padded, count);
      EXPECT_LT(shards.own(), count / ranks + 1 + adamwUnit);
      std::vector<int8_t> owners(shards.padded, 0);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        int64_t local = 0;
        for (int64_t b = 0; b < shards.buckets(); ++b) {
          const Piece piece = shards.piece(b, rank);
          EXPECT_EQ(piece.local, local);
          EXPECT_EQ(piece.begin % adamwUnit, 0);
          EXPECT_LE(piece.count, shards.largest());
          for (int64_t i = 0; i < piece.count; ++i)
            ++owners.at(piece.begin + i);
          local += piece.count;
        }
        EXPECT_EQ(local, shards.own());
      }
      EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), shards.padded);
    }
}

// One rank has all as it is.
TEST(Shards, OneRankHasAll) {
  const Shards shards = Shards::of(12345, 1);
  EXPECT_EQ(shards.padded, 12345);
  EXPECT_EQ(shards.buckets(), 1);
  EXPECT_EQ(shards.piece(0, 0).count, 12345);
}

// The parts of any range that the ranks have are that range.
TEST(Shards, PartsAreTheRange) {
  const int64_t ranks = 3;
  const Shards shards = Shards::of(9000000, ranks);
  for (const auto &[begin, count] : {std::pair<int64_t, int64_t>{0, 9000000}, {4000000, 300000}, {5, 1}, {7, 0}}) {
    std::vector<int8_t> seen(shards.padded, 0);
    for (int64_t rank = 0; rank < ranks; ++rank)
      shards.parts(rank, begin, count, [&](int64_t at, int64_t local, int64_t number) {
        EXPECT_LE(local + number, shards.own());
        for (int64_t i = 0; i < number; ++i)
          ++seen.at(at + i);
      });
    for (int64_t i = 0; i < shards.padded; ++i)
      ASSERT_EQ(seen[i], i >= begin && i < begin + count) << i;
  }
}

// A rank sends its pieces of gradients and weights to all other ranks, and a slower network takes longer. A single rank
// sends nothing.
TEST(ExchangePlan, CountsWhatARankSends) {
  const Shards shards = Shards::of(int64_t{124} << 20, 8);
  const ExchangePlan plan = exchangePlan(shards, 2);
  EXPECT_EQ(plan.gradients, shards.padded / 8 * 7 * 4);
  EXPECT_EQ(plan.weights, shards.padded / 8 * 7 * 2);
  EXPECT_GE(plan.rounds, 2 * shards.buckets());
  EXPECT_DOUBLE_EQ(plan.seconds(1e9, 0), static_cast<double>(plan.bytes()) / 1e9);
  EXPECT_DOUBLE_EQ(plan.seconds(1e9, 1e-3), plan.seconds(1e9, 0) + 1e-3 * static_cast<double>(plan.rounds));
  EXPECT_EQ(exchangePlan(Shards::of(1000, 1), 4).bytes(), 0);
}

} // namespace

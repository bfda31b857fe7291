// The preset `annotated`: PyTorch's losses, its number of parameters, and its training settings.

#include "models/data/batches.h"
#include "models/data/files.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/train/settings.h"
#include "models/train/trainer.h"
#include "test/devices.h"
#include "test/paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

class Seed001 : public DeviceTest {};

/// Sequences of micro-batch `number`, as test/oracles/annotated.py has them.
HostBatch microBatch(int64_t number, int64_t count) {
  std::vector<int32_t> tokens, targets;
  const auto token = [](int64_t i) { return static_cast<int32_t>((i * i * 7 + i * 13) % 293); };
  for (int64_t i = number * 31; i < number * 31 + count; ++i) {
    tokens.push_back(token(i));
    targets.push_back(token(i + 1));
  }
  return languageBatch(tokens, targets);
}

// Fifty steps of two micro-batches have the losses that test/oracles/annotated.py recorded: norms over n - 1 without an
// epsilon, scaled rows of tokens, attention without biases, the head's bias, decay of gains too, and the schedule.
TEST_P(Seed001, HasPyTorchsLosses) {
  const std::vector<double> want =
      nlohmann::json::parse(readFile(kiln::test::sourcePath("test/models/gpt2/annotated.json"))).at("losses");
  NamedGpt2 named = gpt2Named("annotated-small");
  named.config.vocab = 300;
  TrainSettings &s = named.settings;
  s.steps = std::ssize(want);
  s.warmup = 10;
  s.dropout = s.dropoutAttention = 0;
  s.precision = Precision::ieee;
  const Network network(configured(named.config, s));
  Trainer trainer(Device::open(GetParam()), network, s);
  trainer.initialize(7);
  const int64_t steps = GetParam() == "cpu" ? s.steps : GetParam().starts_with("cpu") ? 10 : 1; // others take seconds
  for (int64_t step = 0; step < steps; ++step) {
    trainer.beginStep(learningRate(s, step), step + 1);
    for (int64_t micro = 0; micro < s.accumulate; ++micro)
      trainer.addGradient(microBatch(step * s.accumulate + micro, s.batch * named.config.context), micro);
    EXPECT_NEAR(trainer.update().loss, want[step], 1e-5) << step;
  }
}
KILN_ON_DEVICES(Seed001);

// The seed's model has the parameters that the seed counts.
TEST(Seed001Presets, HasTheSeedsParameters) {
  const Network network(gpt2Named("annotated").config);
  int64_t count = 0;
  for (const Parameter &p : network.parameters().all())
    count += p.count();
  EXPECT_EQ(count, 112614958);
  EXPECT_EQ(parameterCount(network.config()), count);
}

// The number of parameters that llm.c counts, without its padding.
TEST(Seed001Presets, LlmcsModelHasItsParameters) {
  EXPECT_EQ(parameterCount(gpt2Named("llmc-124m").config), 124439808);
  const TrainSettings s = gpt2Named("llmc-124m").settings;
  EXPECT_EQ(s.batch * s.accumulate * 1024, 524288);
}

// A step has 8 · 32 sequences. The learning rate increases for two thousand steps and would reach zero after the last.
TEST(Seed001Presets, TrainsAsTheSeedDoes) {
  const TrainSettings s = gpt2Named("annotated").settings;
  EXPECT_EQ(s.batch, 8);
  EXPECT_EQ(s.accumulate, 32);
  EXPECT_DOUBLE_EQ(learningRate(s, 1999), 2.5e-4);
  EXPECT_DOUBLE_EQ(learningRate(s, 6000), 1.25e-4);
  EXPECT_NEAR(learningRate(s, 10000), 0, 1e-18);
  EXPECT_EQ(s.decayOn, DecayOn::nonzero);
  EXPECT_EQ(s.dropoutKind, DropoutKind::plain);
  EXPECT_EQ(s.clip, 0);
}

// The rate of `mlp-first` decreases by a hundredth each step, with four micro-batches of sixteen. Its model has an
// untied head with a bias.
TEST(Seed004Presets, TrainsAsTheSeedDoes) {
  const NamedGpt2 named = gpt2Named("mlp-first");
  const TrainSettings &s = named.settings;
  EXPECT_EQ(s.batch * s.accumulate, 64);
  EXPECT_DOUBLE_EQ(learningRate(s, 9), 4e-4);
  for (const int64_t step : {11, 500, 999})
    EXPECT_NEAR(learningRate(s, step) / learningRate(s, step - 1), 0.99, 1e-12);
  const int64_t C = 1024, block = 12 * C * C + 13 * C; // four products of attention, eight of the other, biases, norms
  EXPECT_EQ(parameterCount(named.config), (2048 + 512) * C + 12 * block + 2 * C + 2048 * C + 2048);
}

} // namespace

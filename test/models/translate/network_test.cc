// Models that translate: PyTorch's losses, and the sizes that the presets should have.

#include "models/data/pairs.h"
#include "models/train/settings.h"
#include "models/train/trainer.h"
#include "models/translate/network.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int64_t sequences = 4, source = 9, target = 7, vocab = 23;

/// Step `step` of test/oracles/translation.py: its arrays; targets are missing after some position of each row.
HostBatch batchOf(int64_t step) {
  const auto tokens = [&](int64_t count, int64_t shift) {
    std::vector<int32_t> all;
    for (int64_t i = step * 31 + shift; i < step * 31 + shift + count; ++i)
      all.push_back(static_cast<int32_t>((i * i * 7 + i * 13) % vocab));
    return all;
  };
  std::vector<int32_t> targets = tokens(sequences * target, 4);
  for (int64_t row = 0; row < sequences; ++row)
    for (int64_t i = 2 + (row + step) % (target - 1); i < target; ++i)
      targets[row * target + i] = -1;
  HostBatch batch = languageBatch(tokens(sequences * target, 3), targets);
  batch["source tokens"] = tokens(sequences * source, 0);
  batch["source ranges"] = std::vector<int32_t>{0, source, 0, static_cast<int32_t>(1 + step % source), 0, 3, 0, 5};
  return batch;
}

class TranslationModel : public DeviceTest {
protected:
  /// Twenty steps of a small model with the options of the named preset have the recorded losses. Kernels are chosen
  /// for two shapes, as for an epoch of many.
  void expectLosses(const std::string &name) {
    const std::vector<double> want =
        nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/translate/losses.json"))).at(name);
    TrainSettings s = translationNamed(name).settings;
    s.batch = sequences;
    s.accumulate = 1;
    s.steps = std::ssize(want);
    s.schedule = Schedule::noam;
    s.rate = 1e-2;
    s.warmup = 5;
    s.beta2 = 0.98;
    s.epsilon = 1e-9;
    s.dropout = s.dropoutActivation = s.dropoutAttention = 0;
    s.precision = Precision::ieee;
    const TranslationConfig config = {2, 2, 4, 32, 96, 12, translationNamed(name).config.form, vocab, vocab};
    const TranslationNetwork network(configured(config, s));
    const BatchShape shape = {sequences, target, source};
    Trainer trainer(Device::open(GetParam()), network, s, std::vector{BatchShape{1, 2, 3}, shape});
    trainer.initialize(7);
    const int64_t steps = GetParam().starts_with("cpu") ? s.steps : 3; // simulating one takes seconds
    for (int64_t step = 0; step < steps; ++step) {
      HostBatch batch = batchOf(step);
      batch.shape = shape;
      const std::vector<int32_t> targets = batch.at("targets").numbers<int32_t>();
      trainer.beginStep(learningRate(s, step), step + 1,
                        std::ssize(targets) - std::count(targets.begin(), targets.end(), -1));
      trainer.addGradient(batch, 0);
      EXPECT_NEAR(trainer.update().loss, want[step], 1e-5) << step;
    }
  }
};

// One table of tokens, which is the head; norms as PyTorch's; smoothed labels; a rate that rises and falls.
TEST_P(TranslationModel, SmallHasPyTorchsLosses) { expectLosses("small"); }

// A token table for each side and an untied head; norms divide by the deviation (over n − 1) plus epsilon.
TEST_P(TranslationModel, AnnotatedHasPyTorchsLosses) { expectLosses("annotated"); }

KILN_ON_DEVICES(TranslationModel);

int64_t parametersOf(const std::string &name, int64_t sourceVocab, int64_t targetVocab) {
  TranslationConfig config = translationNamed(name).config;
  config.sourceVocab = sourceVocab;
  config.vocab = targetVocab;
  int64_t count = 0;
  const TranslationNetwork network(config);
  for (const Parameter &p : network.parameters().all())
    count += p.role == Role::fixed ? 0 : p.count();
  return count;
}

// Vaswani et al. 2017: six blocks of 512² · 4 + 512 · 2048 · 2 weights, and 512² · 4 more in the decoder's; biases of
// the feed-forward layers and norms only; and a table of 37000 tokens with a bias.
TEST(TranslationNetwork, HasThePapersParameters) {
  const int64_t attention = 4 * 512 * 512, feed = 2 * 512 * 2048 + 2048 + 512, norm = 2 * 512;
  EXPECT_EQ(parametersOf("aiayn", 37000, 37000),
            6 * (attention + feed + 2 * norm) + 6 * (2 * attention + feed + 3 * norm) + 37000 * 513);
}

// With two vocabularies, each side has its own table.
TEST(TranslationNetwork, HasATableForEachVocabulary) {
  EXPECT_EQ(parametersOf("annotated", 110, 210) - parametersOf("annotated", 100, 200), 10 * 512 + 10 * (512 + 513));
  expectError(
      [] { parametersOf("small", 100, 101); },
      {"a table that source and translation share requires one tokenizer (--tokens), but got 100 and 101 tokens"});
}

} // namespace

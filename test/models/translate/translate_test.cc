// translate as a user runs it.

#include "models/data/pairs.h"
#include "models/train/checkpoint.h"
#include "models/train/settings.h"
#include "models/train/trainer.h"
#include "models/translate/network.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/gpt2/program.h"
#include "test/models/train/every_setting.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

namespace {

/// A language of numbers that are translated by reversing them, and files with it.
class TranslateTest : public ProgramTest {
protected:
  static constexpr const char *numbers[][2] = {
      {"eins", "one"}, {"zwei", "two"}, {"drei", "three"}, {"vier", "four"}, {"fünf", "five"}};
  TranslateTest() {
    writePairs("train", 300, 0);
    writePairs("held", 20, 1000);
    writeText(folder / "words", "one two three four five\neins zwei drei vier fünf\n");
  }
  void writePairs(const std::string &name, int count, int begin) const {
    std::string sources, targets;
    for (int i = begin; i < begin + count; ++i) {
      std::string source, target;
      for (int n = i * 37 % 101; n > 0; n /= 3) {
        source += (source.empty() ? "" : " ") + std::string(numbers[n % 5][0]);
        target = numbers[n % 5][1] + (target.empty() ? "" : " " + target);
      }
      sources += source + "\n", targets += target + "\n";
    }
    writeText(folder / (name + ".de"), sources);
    writeText(folder / (name + ".en"), targets);
  }
  Result translate(const std::vector<std::string> &words) const { return run("translate", words); }
  /// A tokenizer of the words of both languages.
  std::string tokens() const {
    expectResult(run("tokens", {"train", folder / "words", "--out", folder / "tokens", "--style", "whole-words",
                                "--min-count", "1"}),
                 0);
    return folder / "tokens";
  }
  std::vector<std::string> trainWords(const std::string &to, const std::vector<std::string> &more) const {
    std::istringstream sizes("--encoder-layers 1 --layers 1 --heads 2 --width 32 --inner 64 --context 12 --batch 12");
    const std::vector<std::string> words = {"train",
                                            "--out",
                                            to,
                                            "--source",
                                            folder / "train.de",
                                            "--target",
                                            folder / "train.en",
                                            "--validation-source",
                                            folder / "held.de",
                                            "--validation-target",
                                            folder / "held.en",
                                            "--tokens",
                                            folder / "tokens"};
    return joined(joined(words, {std::istream_iterator<std::string>(sizes), {}}), more);
  }
};

// The model learns to translate most of the held-out lines. Five steps and the rest save the bytes of all steps. BLEU
// is computed for its translations.
TEST_F(TranslateTest, LearnsResumesAndTranslates) {
  tokens();
  const std::vector<std::string> steps = {
      "--epochs", "12", "--lr", "0.01", "--warmup", "30", "--device", kiln::test::firstDevice(), "--dropout", "0.05"};
  const Result whole = translate(trainWords(folder / "whole", steps));
  ASSERT_EQ(whole.status, 0) << whole.output;
  EXPECT_NE(whole.output.find(" shapes, made 0 specialisations more"), std::string::npos) << whole.output;
  ASSERT_EQ(translate(trainWords(out, joined(steps, {"--stop-after", "5", "--profile", "2:4"}))).status, 0);
  EXPECT_NE(readText(out + "/trace-2-4.json").find("\"name\":\"step 4\""), std::string::npos);
  expectResult(translate(trainWords(out, {"--resume", "--device", kiln::test::firstDevice()})), 0);
  expectSameFiles(*kiln::newestCheckpoint(folder / "whole"), *kiln::newestCheckpoint(out));
  EXPECT_LT(rows(out).back().at("val_loss").get<double>(), 0.5 * rows(out).front().at("loss").get<double>());
  writeText(folder / "lines", "eins zwei\n\ndrei\n");
  const Result text = translate({"translate", "--out", out, "--source", folder / "lines"});
  EXPECT_EQ(text.status, 0) << text.output;
  EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 3) << text.output;
  const Result bleu = translate({"eval", "--out", out, "--source", folder / "held.de", "--target", folder / "held.en"});
  EXPECT_EQ(bleu.status, 0) << bleu.output;
  EXPECT_EQ(bleu.output.rfind("BLEU         ", 0), 0u) << bleu.output;
  EXPECT_GT(std::stod(bleu.output.substr(13)), 50) << bleu.output;
  const Result held = translate({"translate", "--out", out, "--source", folder / "held.de"});
  writeText(folder / "made", held.output);
  EXPECT_EQ(translate({"eval", "--translations", folder / "made", "--target", folder / "held.en"}).output, bleu.output);
}

// A resumed run keeps every setting, and may change any; --epochs sets its number of steps, too.
TEST_F(TranslateTest, EverySettingGoesOn) {
  tokens();
  expectEverySettingGoesOn(folder / "settings", {commonSettings({"attention"}), scaledSettings(), narrowSettings()},
                           {{"batching", "packed", "--batching must be stream"},
                            {"attention", "plain", "--attention plain is not supported"},
                            {"order", "llmc", "--order requires a text as data"},
                            {"pack", "0.5", "--pack requires --batching packed, but got --batching stream"},
                            {"positions", "run-on", "--positions requires --batching packed"}},
                           [&](const std::string &to, const auto &flags) { return translate(trainWords(to, flags)); });
  const std::string run = folder / "settings" + "/group-0-own";
  const auto stepsOf = [&](const std::string &epochs) {
    const Result result = translate(trainWords(run, {"--resume", "--epochs", epochs, "--stop-after", "7"}));
    EXPECT_EQ(result.status, 0) << result.output;
    return kiln::readRunState(kiln::checkpointPath(run, 7)).settings.steps;
  };
  const int64_t two = stepsOf("2");
  EXPECT_GT(two, 7);
  std::filesystem::remove_all(kiln::checkpointPath(run, 7));
  EXPECT_EQ(stepsOf("4"), 2 * two);
}

// Twenty steps in the simulator, with all checks on and no report, dropout of everything: in f32 with the losses of the
// CPU, whose sums are in another order, and in bf16.
TEST_F(TranslateTest, TrainsInTheSimulator) {
  tokens();
  expectLossesInTheSimulator([&](const std::string &to, const auto &more) {
    return translate(
        trainWords(to, joined({"--precision", "ieee", "--batch", "3", "--dropout-attention", "0.1"}, more)));
  });
}

// Every micro-batch has other lengths; some permit wider accesses of a GPU than others. Its loss chunks have fewer rows
// or none. The kernels of a bucket serve them all.
TEST_F(TranslateTest, ABucketsKernelsServeEveryLength) {
  tokens();
  const std::vector<std::pair<int, int>> words = {{15, 15}, {15, 15}, {11, 15}, {15, 11}, {31, 15},
                                                  {20, 25}, {31, 31}, {17, 30}, {7, 5}};
  std::string texts[2];
  for (const auto &[source, target] : words)
    for (const int side : {0, 1})
      for (int i = 0, count = side ? target : source; i < count; ++i)
        texts[side] += numbers[i % 5][side] + std::string(i + 1 < count ? " " : "\n");
  writeText(folder / "long.de", texts[0]);
  writeText(folder / "long.en", texts[1]);
  std::istringstream model("--epochs 1 --batch 2 --width 24 --heads 3 --inner 40 --context 34 --dropout 0.1 "
                           "--dropout-attention 0.1 --overwrite");
  std::vector<std::string> flags(std::istream_iterator<std::string>(model), {});
  flags.insert(flags.end(), {"--source", folder / "long.de", "--target", folder / "long.en"});
  for (const auto &[device, chunks] : {std::pair("cpu", "5"), {"simulator:sm_80", "5"}, {"simulator:sm_90a", "1"}}) {
    const std::vector<std::string> all = joined(flags, {"--device", device, "--loss-chunks", chunks});
    expectResult(translate(trainWords(out, all)), 0, {" shapes, made 0 specialisations more"});
  }
}

// The table of parameters, with their number at the end.
TEST_F(TranslateTest, SaysWhatAModelConsistsOf) {
  expectResult(translate({"info", "--model", "aiayn", "--vocab", "37000"}), 0,
               {"    63082632  parameters\n", "    18944000  37000x512    decoder.tokens.weight\n"});
}

// Errors of flags and files have exit status 2.
TEST_F(TranslateTest, SaysWhatIsWrong) {
  tokens();
  const auto refused = [&](const std::vector<std::string> &words, const std::string &message) {
    expectMistake(translate(words), message);
  };
  const auto refusedTraining = [&](const std::vector<std::string> &more, const std::string &message) {
    refused(trainWords(out, more), message);
  };
  writeText(folder / "short", "eins\n");
  writeText(folder / "empty", "");
  refusedTraining({"--target", folder / "short"}, "as many lines in '" + (folder / "train.de"));
  refusedTraining({"--target", folder / "empty"},
                  "expected lines of text in '" + (folder / "empty") + "', but it is empty");
  refusedTraining({"--source", folder / "none"}, "none'");
  refusedTraining({"--source-tokens", folder / "tokens"}, "train requires --tokens, the tokenizer of both sides, or");
  refusedTraining({"--tokens", "bytes"}, "expected a tokenizer of the target with the special tokens <s> and </s>");
  refusedTraining({"--epochs", "2", "--steps", "3"}, "--epochs and --steps exclude each other");
  refusedTraining({"--best", "bleu"}, "expected '--best' to be accuracy or loss, but got 'bleu'");
  refusedTraining({"--epochs", "0"}, "expected '--epochs' to be at least 1, but got 0");
  refusedTraining({"--model", "large"}, "unknown model 'large' (known: small, aiayn, annotated)");
  refusedTraining({"--heads", "5"}, "expected the number of heads to divide the width, but got 5 heads and width 32");
  refusedTraining({"--context", "1"}, "of at most 0 tokens, but there are none");
  refusedTraining({"--attention", "plain"}, "--attention plain is not supported");
  refusedTraining({"--batching", "packed"}, "--batching must be stream");
  refusedTraining({"--batch-tokens", "4"},
                  "expected sequences of at most 4 tokens, the size of a micro-batch (--batch-tokens), but got one of");
  refusedTraining({"--label-smoothing", "1"}, "expected '--label-smoothing' to be at least 0 and below 1, but got 1");
  refused({"translate", "--out", folder / "nowhere"}, "nowhere");
  refused({"eval", "--out", out, "--source", folder / "held.de"}, "expected the flag '--target', but it is missing");
  const std::vector<std::string> judged = {"eval", "--target", folder / "held.en"};
  const auto judgedBy = [&](const std::vector<std::string> &more) {
    refused(joined(judged, more),
            "eval requires --out, a run's folder, and --source, a file of lines; or --translations without both");
  };
  judgedBy({});
  judgedBy({"--out", out});
  judgedBy({"--source", folder / "held.de", "--translations", folder / "held.de"});
  refused({"eval", "--translations", folder / "short", "--target", folder / "held.en"}, "expected as many lines in '");
  refused({"trian"}, "unknown command 'trian'; did you mean 'train'?");
}

// --- Models that translate: PyTorch's losses, and the sizes that the presets should have -----------------------------

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

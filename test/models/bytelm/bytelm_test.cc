// The byte-level model: PyTorch's losses, its number of parameters, and the bytes that a position sees.

#include "models/bytelm/network.h"
#include "models/data/batches.h"
#include "models/data/json.h"
#include "models/train/checkpoint.h"
#include "models/train/trainer.h"
#include "test/devices.h"
#include "test/models/gpt2/program.h"
#include "test/models/train/every_setting.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class ByteModel : public DeviceTest {};

// Twenty steps of Adam on two blocks have the losses that test/oracles/bytelm.py recorded. Initial weights, drawn by
// index, the shift after a vector of zeros, layers, gradients and updates equal PyTorch's.
TEST_P(ByteModel, HasPyTorchsLosses) {
  const std::vector<double> want =
      nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/bytelm/losses.json"))).at("losses");
  const ByteConfig config = {2, 4, 32, 96, 24};
  TrainSettings s = byteModelNamed("base").settings;
  s.batch = 5;
  s.accumulate = 1;
  s.steps = static_cast<int64_t>(want.size());
  s.precision = Precision::ieee;
  const ByteNetwork network(config);
  Trainer trainer(Device::open(GetParam()), network, s);
  trainer.initialize(7);
  const int64_t steps = GetParam().starts_with("cpu") ? s.steps : 3; // simulating one takes seconds
  for (int64_t step = 0; step < steps; ++step) {
    const auto byte = [](int64_t i) { return static_cast<int32_t>((i * i * 7 + i * 13) % 251); };
    std::vector<int32_t> bytes, next;
    for (int64_t i = step * 31; i < step * 31 + 5 * 24; ++i) {
      bytes.push_back(byte(i));
      next.push_back(byte(i + 1));
    }
    trainer.beginStep(learningRate(s, step), step + 1);
    trainer.addGradient(shifted(languageBatch(bytes, next), 24), 0);
    EXPECT_NEAR(trainer.update().loss, want[step], 1e-5) << step;
  }
}
KILN_ON_DEVICES(ByteModel);

// The seed's model has the parameters that the seed counts.
TEST(ByteNetwork, HasTheSeedsParameters) {
  const ByteNetwork network(byteModelNamed("base").config);
  int64_t count = 0;
  for (const Parameter &p : network.parameters().all())
    count += p.count();
  EXPECT_EQ(count, 25612544);
}

// PyTorch's own layer draws queries, keys and values within √(6 / (in + out)), here √(6 / 2048), and initialises biases
// of attention to 0. Its other linear layers are as this model's, within 1/√in.
TEST(ByteNetwork, PyTorchsLayerBeginsAttentionByXavier) {
  const NamedByteModel &named = byteModelNamed("pytorch");
  EXPECT_EQ(named.settings.dropoutAttention, 0.1);
  const ByteNetwork network(named.config);
  const auto largest = [&](const std::string &name) {
    for (const Parameter &p : network.parameters().all())
      if (p.name == "blocks.3." + name) {
        const std::vector<float> numbers = firstNumbers(p, Random(1, Stream::weights), 5);
        return *std::max_element(numbers.begin(), numbers.end());
      }
    return -1.0f;
  };
  EXPECT_NEAR(largest("attention_input.weight"), std::sqrt(6 / 2048.0), 1e-4);
  EXPECT_NEAR(largest("attention_output.weight"), 1 / std::sqrt(512.0), 1e-4);
  EXPECT_NEAR(largest("mlp_output.weight"), 1 / std::sqrt(2048.0), 1e-4);
  EXPECT_EQ(largest("attention_input.bias"), 0);
  EXPECT_EQ(largest("attention_output.bias"), 0);
  EXPECT_GT(largest("mlp_output.bias"), 0);
}

// The seed trains with Adam at a constant rate and neither decay nor clipping, on a hundred sequences a step.
TEST(ByteNetwork, TrainsAsTheSeedDoes) {
  const TrainSettings &s = byteModelNamed("base").settings;
  EXPECT_EQ(s.batch * s.accumulate, 100);
  for (const int64_t step : {0, 1, 2500, 4999})
    EXPECT_DOUBLE_EQ(learningRate(s, step), 1e-3);
  EXPECT_EQ(s.decay, 0);
  EXPECT_EQ(s.clip, 0);
  EXPECT_EQ(s.dropout, 0.1);
}

// Each byte of a sequence is a target that sees only the bytes before it; the first sees none. Positions past the end
// of the text have no inputs and no targets, also if a whole sequence is there.
TEST(Shifted, EachByteIsATarget) {
  const int32_t none = ignoredTarget;
  const HostBatch batch =
      shifted(languageBatch({1, 2, 3, 4, 5, 0, 0, 0, 0}, {2, 3, 4, 5, 6, none, none, none, none}), 3);
  EXPECT_EQ(batch.at("tokens").numbers<int32_t>(), (std::vector<int32_t>{-1, 1, 2, -1, 4, 5, -1, -1, -1}));
  EXPECT_EQ(batch.at("targets").numbers<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4, 5, 6, none, none, none}));
}

// --- bytelm as a user runs it ----------------------------------------------------------------------------------------

class BytelmTest : public ProgramTest {
protected:
  Result bytelm(const std::vector<std::string> &words) { return run("bytelm", words); }
  Result trains(const std::string &out, const std::vector<std::string> &more) {
    return bytelm(trainWords(out, joined({"--model", "small", "--inner", "32"}, more)));
  }
};

// The loss decreases, with dropout. Five steps and seven more save the bytes of twelve. Sampling writes bytes, also
// without a prompt.
TEST_F(BytelmTest, TrainsResumesAndSamples) {
  const std::vector<std::string> steps = {"--steps", "12", "--lr", "0.01"};
  const Result whole = trains(folder / "whole", steps);
  ASSERT_EQ(whole.status, 0) << whole.output;
  ASSERT_EQ(trains(out, joined(steps, {"--stop-after", "5", "--profile", "2:4"})).status, 0);
  EXPECT_NE(readText(out + "/trace-2-4.json").find("\"name\":\"step 4\""), std::string::npos);
  expectResult(resume("bytelm"), 0);
  expectSameFiles(kiln::checkpointPath(folder / "whole", 12), kiln::checkpointPath(out, 12));
  EXPECT_LT(rows(out).back().at("val_loss").get<double>(), rows(out).front().at("loss").get<double>());
  for (const char *prompt : {"", "line 12 of the text"}) {
    const Result text = bytelm({"sample", "--out", out, "--prompt", prompt, "--bytes", "20"});
    EXPECT_EQ(text.status, 0) << text.output;
    EXPECT_EQ(text.output.find("bytelm: a text became longer"), std::string(prompt).size() + 21);
  }
  EXPECT_EQ(bytelm({"plot", out, "-o", folder / "losses.svg"}).status, 0);
}

// A resumed run keeps every setting, and may change any.
TEST_F(BytelmTest, EverySettingGoesOn) {
  expectEverySettingGoesOn(
      folder / "settings",
      {commonSettings({"batch-tokens"}), scaledSettings(), narrowSettings({{"order", "llmc", "shuffled"}})},
      {{"batching", "packed", "--batching must be stream"},
       {"batch-tokens", "100", "--batch-tokens requires pairs of lines"},
       {"pack", "0.5", "--pack requires --batching packed, but got --batching stream"},
       {"positions", "run-on", "--positions requires --batching packed"}},
      [&](const std::string &to, const auto &flags) { return trains(to, flags); });
}

// It trains in the simulator, with all checks on and no report, dropout and attention's biases as PyTorch's layer has
// them; in f32 with the losses of the CPU, whose sums are in another order.
TEST_F(BytelmTest, TrainsInTheSimulator) {
  const std::vector<std::string> toy = {
      "--model", "pytorch",     "--inner", "32", "--batch", "2", "--accumulate", "1", "--evaluate-sequences",
      "1",       "--precision", "ieee"};
  expectLossesInTheSimulator(
      [&](const std::string &to, const auto &more) { return bytelm(trainWords(to, joined(toy, more))); });
}

// The table of parameters, with their number at the end.
TEST_F(BytelmTest, SaysWhatTheSeedsModelConsistsOf) {
  expectResult(bytelm({"info", "--model", "small", "--memory", "1GiB"}), 0,
               {"recomputed\n", " of 1.00 GiB: --recompute "});
  expectResult(bytelm({"info"}), 0,
               {"    25612544  parameters\n", "     1048576  512x2048     blocks.7.mlp_input.weight\n",
                "         256  256          head.bias\n"});
}

// A checkpoint cannot be read as a model with other sizes or of another kind.
TEST_F(BytelmTest, RefusesAnotherModel) {
  ASSERT_EQ(trains(out, {"--steps", "1"}).status, 0);
  expectMistake(bytelm({"train", "--data", data, "--out", out, "--resume", "--layers", "2"}),
                "the checkpoint's model has 1 layers");
  expectMistake(bytelm({"train", "--data", data, "--out", out, "--model", "seed", "--overwrite"}),
                "unknown model 'seed' (known: base, pytorch, small)");
}

} // namespace

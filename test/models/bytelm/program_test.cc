// bytelm as a user runs it.

#include "models/train/checkpoint.h"
#include "test/models/gpt2/program.h"
#include "test/models/train/every_setting.h"
#include "test/paths.h"

namespace {

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

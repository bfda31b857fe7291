// bytelm as a user runs it.

#include "models/train/checkpoint.h"
#include "test/models/gpt2/program.h"
#include "test/models/train/every_setting.h"
#include "test/paths.h"

namespace {

class BytelmTest : public ProgramTest {
protected:
  Result bytelm(std::vector<std::string> words) {
    words.insert(words.begin(), kiln::test::programPath("bytelm"));
    const int status = finish(start(words, folder / "output"));
    return {status, readText(folder / "output")};
  }
  Result trains(const std::string &out, const std::vector<std::string> &more) {
    std::vector<std::string> words = {"--model", "small", "--inner", "32"};
    words.insert(words.end(), more.begin(), more.end());
    return bytelm(trainWords(out, words));
  }
};

// The loss decreases, with dropout. Five steps and seven more save the bytes of twelve. Sampling writes bytes, also
// without a prompt.
TEST_F(BytelmTest, TrainsResumesAndSamples) {
  const std::vector<std::string> steps = {"--steps", "12", "--lr", "0.01"};
  const Result whole = trains(folder / "whole", steps);
  ASSERT_EQ(whole.status, 0) << whole.output;
  std::vector<std::string> first = steps;
  first.insert(first.end(), {"--stop-after", "5", "--profile", "2:4"});
  ASSERT_EQ(trains(out, first).status, 0);
  EXPECT_NE(readText(out + "/trace-2-4.json").find("\"name\":\"step 4\""), std::string::npos);
  const Result second =
      bytelm({"train", "--data", data, "--out", out, "--resume", "--device", kiln::test::firstDevice()});
  ASSERT_EQ(second.status, 0) << second.output;
  for (const char *file : {"/config.json", "/model.safetensors", "/optimizer.safetensors", "/training.json"})
    EXPECT_TRUE(readText(kiln::checkpointPath(folder / "whole", 12) + file) ==
                readText(kiln::checkpointPath(out, 12) + file))
        << file;
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
      "--model", "pytorch",     "--inner", "32", "--batch", "2", "--accumulate", "1", "--evaluate-batches",
      "1",       "--precision", "ieee"};
  expectLossesInTheSimulator([&](const std::string &to, std::vector<std::string> more) {
    more.insert(more.begin(), toy.begin(), toy.end());
    return bytelm(trainWords(to, more));
  });
}

// The table of parameters, with their number at the end.
TEST_F(BytelmTest, SaysWhatTheSeedsModelConsistsOf) {
  const Result fits = bytelm({"info", "--model", "small", "--memory", "1GiB"});
  EXPECT_EQ(fits.status, 0) << fits.output;
  EXPECT_NE(fits.output.find("recomputed\n"), std::string::npos) << fits.output;
  EXPECT_NE(fits.output.find(" of 1.00 GiB: --recompute "), std::string::npos) << fits.output;
  const Result r = bytelm({"info"});
  EXPECT_EQ(r.status, 0) << r.output;
  for (const char *line : {"    25612544  parameters\n", "     1048576  512x2048     blocks.7.mlp_input.weight\n",
                           "         256  256          head.bias\n"})
    EXPECT_NE(r.output.find(line), std::string::npos) << line << " in\n" << r.output;
}

// A checkpoint cannot be read as a model with other sizes or of another kind.
TEST_F(BytelmTest, RefusesAnotherModel) {
  ASSERT_EQ(trains(out, {"--steps", "1"}).status, 0);
  const Result other = bytelm({"train", "--data", data, "--out", out, "--resume", "--layers", "2"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.output.find("the checkpoint's model has 1 layers"), std::string::npos) << other.output;
  const Result unknown = bytelm({"train", "--data", data, "--out", out, "--model", "seed", "--overwrite"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.output.find("expected a model out of base, pytorch, small, but got 'seed'"), std::string::npos)
      << unknown.output;
}

} // namespace

// Memory of gpt2: less on request, within the limit, and the same results with any recomputation.

#include "models/gpt2/network.h"
#include "models/train/memory.h"
#include "test/expect_error.h"
#include "test/models/gpt2/program.h"
#include "test/paths.h"

#include <gtest/gtest.h>
#include <map>
#include <sys/resource.h>

using namespace kiln;

namespace {

class MemoryTest : public ProgramTest {
protected:
  /// The most bytes that a command had in memory at a time; it succeeds.
  int64_t peakOf(std::vector<std::string> words) {
    words.insert(words.begin(), kiln::test::programPath(KILN_PROGRAM));
    const pid_t child = start(words, folder / "output");
    int status = 0;
    rusage usage = {};
    wait4(child, &status, 0, &usage);
    EXPECT_EQ(status, 0) << readText(folder / "output");
    return usage.ru_maxrss * 1024;
  }
  static std::vector<double> losses(const std::string &out) {
    std::vector<double> all;
    for (const Json &row : rows(out))
      all.push_back(row.at("loss"));
    return all;
  }
};

// A run with recomputation has equal bits, including dropout, and its checkpoint keeps the setting.
TEST_F(MemoryTest, WhatIsMadeAgainDoesNotShowInARun) {
  const std::vector<std::string> flags = {"--steps", "4", "--dropout", "0.1", "--accumulate", "2"};
  const std::vector<std::string> thrifty = joined(flags, {"--recompute", "block"});
  EXPECT_EQ(train(folder / "all", flags).status, 0);
  EXPECT_EQ(train(out, thrifty).status, 0);
  EXPECT_EQ(losses(out), losses(folder / "all"));
  const Json saved = Json::parse(readText(out + "/checkpoint-00000004/training.json"));
  EXPECT_EQ(saved.at("settings").at("recompute"), "block");
}

// Twenty steps in the simulator, with all of the blocks recomputed and the logits in two parts.
TEST_F(MemoryTest, MakesBlocksAgainInTheSimulator) {
  expectLossesInTheSimulator([&](const std::string &out, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--precision", "ieee", "--recompute", "block", "--loss-chunks", "2"});
    return train(out, flags);
  });
}

// The whole process stays within its budget, including compilation, evaluation, saving and resuming. Without
// recomputation it would not. Instrumented programs take additional memory.
TEST_F(MemoryTest, ARunStaysWithinItsBudget) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory is no part of a budget";
#endif
  const auto words = [&](const std::string &to, std::vector<std::string> more) {
    return joined({"train", "--data", data, "--out", to, "--layers", "8", "--heads", "4", "--width", "128", "--context",
                   "64", "--batch", "96", "--steps", "2"},
                  more);
  };
  const int64_t budget = int64_t{430} << 20, most = budget + budget / 50;
  EXPECT_GT(peakOf(words(folder / "all", {"--stop-after", "1"})), most);
  EXPECT_LE(peakOf(words(out, {"--memory", "430MiB", "--stop-after", "1"})), most) << readText(folder / "output");
  EXPECT_NE(readText(folder / "output").find(" of 430 MiB: --recompute "), std::string::npos);
  EXPECT_LE(peakOf(words(out, {"--resume"})), most) << readText(folder / "output"); // as was chosen
}

TEST_F(MemoryTest, MistakesAreTold) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"--recompute", "everything"},
       "'everything' in '--recompute' is no activation to recompute; expected none, or a list of norms, activation"},
      {{"--recompute", "mlp:0"}, "to have a number of blocks of at least 1 after ':', but got '0'"},
      {{"--loss-chunks", "0"}, "expected '--loss-chunks' to be between 1 and 4096, but got 0"},
      {{"--memory", "much"}, "'much' is no size for '--memory'; expected auto, or a number of KiB"},
      {{"--memory", "1MiB"}, "expected '--memory' of at least "},
      {{"--memory", "6GiB", "--recompute", "mlp"}, "--memory excludes --recompute and --loss-chunks"}};
  for (const auto &[flags, part] : cases)
    expectMistake(train(out, flags), part);
}

// The effect of a memory budget, before anything is allocated.
TEST_F(MemoryTest, InfoShowsWhatTakesHowMuch) {
  const Result r = gpt2({"info", "--model", "d12", "--vocab", "50257", "--dtype", "bf16", "--batch", "8", "--memory",
                         "4GiB", "--device", kiln::test::firstDevice()});
  EXPECT_EQ(r.status, 0) << r.output;
  for (const char *part : {"recomputed\n", "norms,activation\n", " of 4.00 GiB: --recompute "})
    EXPECT_NE(r.output.find(part), std::string::npos) << part << " in\n" << r.output;
}

// The memory and the traffic of one of several ranks; numbers that flags do not give are marked as assumed.
TEST_F(MemoryTest, InfoPlansRanks) {
  const auto info = [&](const std::vector<std::string> &more) {
    const std::vector<std::string> words = joined(
        {"info", "--model", "d12", "--vocab", "50257", "--batch", "1", "--accumulate", "8", "--device", "cpu"}, more);
    const Result r = gpt2(words);
    EXPECT_EQ(r.status, 0) << r.output;
    return r.output;
  };
  const auto mebibytes = [](const std::string &text, const std::string &name) {
    const size_t place = text.find(name);
    return place == std::string::npos ? -1.0 : std::atof(text.c_str() + place + name.size());
  };
  const std::string one = info({}), eight = info({"--ranks", "8", "--bandwidth", "10GB"}),
                    assumed = info({"--ranks", "8"});
  EXPECT_NEAR(mebibytes(eight, "  moments   "), mebibytes(one, "  moments   ") / 8, 0.1);
  EXPECT_NEAR(mebibytes(eight, "sends in a step\n  gradients"), mebibytes(one, "  gradients") * 7 / 8, 1);
  EXPECT_EQ(one.find("ranks"), std::string::npos) << one;
  EXPECT_NE(eight.find("at 10.00 GB/s (given)"), std::string::npos) << eight;
  EXPECT_NE(eight.find("exchanges (assumed)"), std::string::npos) << eight;
  EXPECT_NE(assumed.find("at 1.00 GB/s (assumed)"), std::string::npos) << assumed;
  EXPECT_EQ(gpt2({"info", "--ranks", "0"}).status, 2);
}

// --- The records of a step's launches: their part of the network, their FLOPs and their bytes ------------------------

const Gpt2Config config = {2, 2, 32, 16, 64};
constexpr int64_t sequences = 4;

std::vector<LaunchCost> launchesOn(const Target &target) {
  const Network network(config);
  return planMemory(target, network, network.shape(sequences), {.batch = sequences}).launches;
}

// Every launch of a gradient has a label. Those of the first block name its layers, in order.
TEST(Launches, AreLabelledByTheirPlace) {
  std::vector<std::string> first;
  for (const LaunchCost &launch : launchesOn({"cpu", CpuFacts()})) {
    EXPECT_FALSE(launch.label.empty()) << launch.kernel;
    if (launch.label.starts_with("block 0 "))
      first.push_back(launch.label.substr(8) + ": " + launch.kernel);
  }
  const std::vector<std::string> want = {"attention norm: layernorm",
                                         "attention: matmul_bias",
                                         "attention: attention",
                                         "attention: matmul_residual",
                                         "mlp norm: layernorm",
                                         "mlp: matmul_gelu",
                                         "mlp: matmul_residual",
                                         "mlp backward: weight_gradient",
                                         "mlp backward: matmul_gelu_backward",
                                         "mlp backward: weight_gradient",
                                         "mlp backward: matmul",
                                         "mlp backward norm: layernorm_backward",
                                         "mlp backward norm: sum_pair",
                                         "attention backward: weight_gradient",
                                         "attention backward: matmul",
                                         "attention backward: attention_backward",
                                         "attention backward: weight_gradient",
                                         "attention backward: matmul",
                                         "attention backward norm: layernorm_backward",
                                         "attention backward norm: sum_pair"};
  EXPECT_EQ(first, want);
}

// The operations of all launches are those reported for a step, and the scores of attention once more for every pass
// that recomputes them. A CPU has one such pass. On a GPU the gradients of keys and queries are two passes, each of
// which multiplies dout by v too.
TEST(Launches, ComputeWhatAStepTakes) {
  const auto flopsOn = [](const Target &target) {
    double all = 0;
    for (const LaunchCost &launch : launchesOn(target))
      all += launch.flops;
    return all;
  };
  const double product =
      static_cast<double>(config.layers * sequences * config.context * config.context * config.width);
  EXPECT_EQ(flopsOn({"cpu", CpuFacts()}), flopsOfStep(config, sequences) + product);
  EXPECT_EQ(flopsOn({"gpu", GpuFacts()}), flopsOfStep(config, sequences) + 3 * product);
}

// A GPU idles between launches, so gradients of parameters that are read only at the end of a step are computed
// together. A step of GPT-2 124M has 15 launches for each of its twelve blocks, 9 outside of them, 3 for the weights of
// four blocks each, and 2 for all norms. (The mean loss, the gradients' norm and the update are 4 more.)
TEST(Launches, OfAGpuAreFew) {
  const Network network({.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocab = 50257});
  const MemoryPlan memory = planMemory({"gpu", GpuFacts()}, network, network.shape(8), {.batch = 8});
  EXPECT_LE(memory.launches.size(), 12 * 15 + 9 + 3 + 2);
  std::map<std::string, int> kernels;
  for (const LaunchCost &launch : memory.launches)
    ++kernels[launch.kernel];
  EXPECT_EQ(kernels["sum_pair"], 2);
  EXPECT_EQ(kernels["weight_gradient"], 4); // and the head's
}

// A launch's bytes are those of its views, including its workspace; scalars have none.
TEST(Launches, GoThroughTheirViews) {
  const TensorRef x = TensorRef::dense(nullptr, bf16, {3, 5}), column = TensorRef::dense(nullptr, f32, {7});
  const Launch launch = {.args = {x, column.slice(0, 2, 4), Arg::workspace(64, f32, {2, 2}), 1.0f, 7}};
  EXPECT_EQ(launch.bytes(), 3 * 5 * 2 + 4 * 4 + 4 * 4);
}

} // namespace

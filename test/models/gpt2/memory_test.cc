// Memory of gpt2: less on request, within the limit, and the same results with any recomputation.

#include "test/models/gpt2/program.h"
#include "test/paths.h"

#include <sys/resource.h>

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

} // namespace

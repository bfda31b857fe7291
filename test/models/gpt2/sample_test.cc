// Options of `gpt2 sample`. The model is hardly trained: its text looks like noise, but is equal in every run.

#include "test/models/gpt2/program.h"

namespace {

class SampleTest : public ProgramTest {
protected:
  /// A byte-level model with a context of 40.
  void SetUp() override { ASSERT_EQ(train(out, {"--steps", "2", "--context", "40"}).status, 0); }
  std::string written(std::vector<std::string> more) {
    const std::vector<std::string> words =
        joined({"sample", "--out", out, "--tokens", "12", "--device", kiln::test::firstDevice()}, more);
    const Result r = gpt2(words);
    EXPECT_EQ(r.status, 0) << r.output;
    return r.output;
  }
};

const std::string dashes = "---------------\n";

// The first of several texts equals a single one, and a line of dashes follows each.
TEST_F(SampleTest, SeveralTextsGrowSideBySide) {
  const std::string one = written({"--prompt", "line"}), three = written({"--prompt", "line", "--num", "3"});
  EXPECT_EQ(three.substr(0, one.size() + dashes.size()), one + dashes);
  size_t count = 0;
  for (size_t at = 0; (at = three.find(dashes, at)) != std::string::npos; at += dashes.size())
    ++count;
  EXPECT_EQ(count, 3u);
  EXPECT_NE(three.substr(one.size() + dashes.size(), one.size()), one);
}

// A prompt in a file equals one on the command line.
TEST_F(SampleTest, PromptsComeFromFiles) {
  writeText(folder / "prompt", "line 7");
  EXPECT_EQ(written({"--prompt-file", folder / "prompt"}), written({"--prompt", "line 7"}));
}

// A text ends before a stop string; here that is its second part.
TEST_F(SampleTest, TextsEndInFrontOfAStop) {
  const std::string whole = written({"--prompt", "line", "--temperature", "0"});
  ASSERT_GT(whole.size(), 7u);
  const std::string stop = whole.substr(5, 2);
  EXPECT_EQ(written({"--prompt", "line", "--temperature", "0", "--stop", "never seen", "--stop", stop}),
            whole.substr(0, whole.find(stop, 4)) + "\n");
}

// Each filter alone leaves only the most likely token if its flag is given.
TEST_F(SampleTest, FiltersThatLeaveOneTokenAreGreedy) {
  const std::string greedy = written({"--prompt", "line", "--temperature", "0"});
  for (const std::vector<std::string> &filter :
       std::vector<std::vector<std::string>>{{"--top-k", "1"}, {"--top-p", "0.000001"}, {"--min-p", "1"}})
    EXPECT_EQ(written({"--prompt", "line", filter[0], filter[1]}), greedy) << filter[0];
  EXPECT_NE(written({"--prompt", "line", "--temperature", "0", "--repetition-penalty", "1000"}), greedy);
}

// The speed is printed on request.
TEST_F(SampleTest, SpeedIsSaid) {
  EXPECT_NE(written({"--prompt", "line", "--speed"}).find("12 tokens written"), std::string::npos);
}

TEST_F(SampleTest, MistakesAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--prompt", "a", "--prompt-file", "b"}, "--prompt and --prompt-file exclude each other"},
      {{"--prompt", ""}, "expected a prompt of at least one byte, but got an empty one"},
      {{"--prompt-file", folder / "none"}, "none"},
      {{"--tokens", "0"}, "expected '--tokens' to be at least 1, but got 0"},
      {{"--num", "0"}, "expected '--num' to be at least 1, but got 0"},
      {{"--stop", ""}, "expected '--stop' to be a text of at least one byte, but got an empty one"},
      {{"--top-p", "1.5"}, "expected '--top-p' to be above 0 and at most 1, but got 1.5"},
      {{"--min-p", "-1"}, "expected '--min-p' to be from 0 to 1, but got -1"},
      {{"--repetition-penalty", "0"}, "expected '--repetition-penalty' to be above 0, but got 0"}};
  for (const auto &[flags, message] : mistakes)
    expectMistake(gpt2(joined({"sample", "--out", out}, flags)), message);
}

} // namespace

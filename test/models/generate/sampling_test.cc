// Sampling: the tokens that Hugging Face's filters leave, ties, and invalid logits.

#include "dialect/dsl/Types.h"
#include "models/generate/sample_command.h"
#include "models/generate/sampling.h"
#include "test/expect_error.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

using namespace kiln;

namespace {

constexpr int vocab = 26;

/// The generator of test/oracles/sampling.py.
class Numbers {
public:
  int below(int bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % bound);
  }

private:
  uint64_t state = 1;
};

struct Case {
  std::vector<float> logits;
  std::vector<int32_t> seen;
  SamplingParams choice;
};

Case drawCase(Numbers &numbers) {
  Case c;
  std::vector<int> order(vocab);
  for (int i = 0; i < vocab; ++i)
    order[i] = i;
  for (int i = vocab - 1; i > 0; --i)
    std::swap(order[i], order[numbers.below(i + 1)]);
  for (const int rank : order)
    c.logits.push_back(static_cast<float>(rank * 61 + numbers.below(60) - 800) / 256);
  for (int i = 0; i < 6; ++i)
    c.seen.push_back(numbers.below(vocab));
  c.choice.repetitionPenalty = std::array{1.0, 1.237, 1.71}[numbers.below(3)];
  c.choice.temperature = std::array{0.5, 1.0, 1.75}[numbers.below(3)];
  c.choice.topK = std::array{0, 1, 5, 12}[numbers.below(4)];
  c.choice.topP = std::array{1.0, 0.3, 0.7, 0.93}[numbers.below(4)];
  c.choice.minP = std::array{0.0, 0.06, 0.4}[numbers.below(3)];
  return c;
}

// For a thousand random logits and settings, the remaining tokens and their order are Hugging Face's. Its probabilities
// are computed from f32 logits, which adds errors of a few units in the last place.
TEST(SamplingParams, LeavesWhatHuggingFaceLeaves) {
  const nlohmann::json cases =
      nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/generate/sampling.json")));
  Numbers numbers;
  ASSERT_EQ(cases.size(), 1000u);
  for (const nlohmann::json &want : cases) {
    const Case c = drawCase(numbers);
    const std::vector<LikelyToken> left = likelyTokens(c.logits, c.seen, c.choice);
    std::string tokens;
    for (const LikelyToken &l : left)
      tokens += static_cast<char>('a' + l.token);
    EXPECT_EQ(tokens, want[0].get<std::string>());
    EXPECT_NEAR(left.front().probability, want[1].get<double>(), 1e-5);
  }
}

// A random number below the first probability selects the first token, one just below 1 the last.
TEST(SamplingParams, DrawsByProbability) {
  const std::vector<float> logits = {0, std::log(3.0f)};
  const SamplingParams plain = {.temperature = 1};
  EXPECT_EQ(sampleToken(logits, {}, plain, 0.0), 1);
  EXPECT_EQ(sampleToken(logits, {}, plain, 0.74), 1);
  EXPECT_EQ(sampleToken(logits, {}, plain, 0.76), 0);
  EXPECT_EQ(sampleToken(logits, {}, plain, std::nextafter(1.0, 0.0)), 0);
}

// For a vocabulary much larger than the lazily sorted part, a draw equals that from the full sorted distribution at any
// rank: for logits so similar that all are visited, equal ones, and strict filters.
TEST(SamplingParams, DrawsFromLargeVocabularies) {
  Numbers numbers;
  for (const int spread : {1, 40, 4000}) {
    std::vector<float> logits;
    for (int i = 0; i < 5000; ++i)
      logits.push_back(static_cast<float>(numbers.below(spread)) / 64);
    for (const SamplingParams &c : {SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0.5, .topP = 0.9},
                                    SamplingParams{.temperature = 2, .topK = 700, .minP = 0.01}}) {
      const std::vector<LikelyToken> left = likelyTokens(logits, {}, c);
      for (size_t i = 1; i < left.size(); ++i) {
        const float before = logits[left[i - 1].token], own = logits[left[i].token];
        ASSERT_TRUE(before > own || (before == own && left[i - 1].token < left[i].token)) << spread << " " << i;
      }
      for (size_t i = 0; i < left.size() && left[i].probability > 1e-12; i += 1 + i / 3) { // in the middle of each part
        double before = 0;
        for (size_t j = 0; j < i; ++j)
          before += left[j].probability;
        EXPECT_EQ(sampleToken(logits, {}, c, before + left[i].probability / 2), left[i].token) << spread << " " << i;
      }
    }
  }
}

// Without a temperature the largest logit wins, the lowest token of several alike.
TEST(SamplingParams, TakesTheLowestOfTheLikeliest) {
  EXPECT_EQ(sampleToken(std::vector<float>{1, 5, 2, 5}, {}, {.temperature = 0}, 0.99), 1);
}

// Tokens as likely as the k-th are kept.
TEST(SamplingParams, KeepsTiesWithTheKth) {
  EXPECT_EQ(likelyTokens(std::vector<float>{1, 3, 3, 3, 0}, {}, {.temperature = 1, .topK = 2}).size(), 3u);
}

// A diverged model has NaN logits, which are sampled last.
TEST(SamplingParams, TakesNumbersBeforeNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sampleToken(std::vector<float>{nan, -2, nan}, {}, {.temperature = 0}, 0.5), 1);
  EXPECT_EQ(sampleToken(std::vector<float>{nan, -2, nan}, {}, {.temperature = 1}, 0.5), 1);
}

// Infinite logits are sampled before all others, with equal probabilities. −∞ is never sampled.
TEST(SamplingParams, TakesInfiniteLogitsFirst) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> two = {3, infinity, -infinity, infinity};
  for (const double temperature : {0.0, 1.0})
    EXPECT_EQ(sampleToken(two, {}, {.temperature = temperature}, 0.1), 1);
  EXPECT_EQ(sampleToken(two, {}, {.temperature = 1}, 0.6), 3);
  const std::vector<float> one = {-infinity, 0, -infinity};
  EXPECT_EQ(sampleToken(one, {}, {.temperature = 1}, std::nextafter(1.0, 0.0)), 1);
  const std::vector<float> none = {-infinity, -infinity};
  EXPECT_EQ(sampleToken(none, {}, {.temperature = 1}, 0.6), 1);
}

TEST(SamplingParams, RefusesLogitsOfWhichNoneIsANumber) {
  const std::vector<float> logits(3, std::numeric_limits<float>::quiet_NaN());
  for (const double temperature : {0.0, 1.0})
    expectError([&] { sampleToken(logits, {}, {.temperature = temperature}, 0.5); },
                {"expected a logit that is a number, but all logits are NaN"});
}

TEST(SamplingParams, RefusesWhatMakesNoSense) {
  expectError([] { verify(SamplingParams{.temperature = -1}); },
              {"expected '--temperature' to be at least 0, but got -1"});
  expectError([] { verify(SamplingParams{.topK = -1}); }, {"expected '--top-k' to be at least 0, but got -1"});
  expectError([] { verify(SamplingParams{.topP = 0}); }, {"expected '--top-p' to be above 0 and at most 1, but got 0"});
  expectError([] { verify(SamplingParams{.minP = 2}); }, {"expected '--min-p' to be from 0 to 1, but got 2"});
  expectError([] { verify(SamplingParams{.repetitionPenalty = 0}); },
              {"expected '--repetition-penalty' to be above 0, but got 0"});
}

// --- Text that is printed during generation --------------------------------------------------------------------------

/// The output of a stream for a text given byte by byte, one part for each byte.
std::vector<std::string> shown(TextStream &stream, const std::string &text) {
  std::vector<std::string> parts;
  for (const char byte : text)
    parts.push_back(stream.push({&byte, 1}));
  parts.push_back(stream.finish());
  return parts;
}

std::string joined(const std::vector<std::string> &parts) {
  std::string all;
  for (const std::string &part : parts)
    all += part;
  return all;
}

// No part begins or ends within a character, for all lengths.
TEST(TextStream, ShowsWholeCharacters) {
  TextStream stream;
  EXPECT_EQ(shown(stream, "aé€😀b"), (std::vector<std::string>{"a", "", "é", "", "", "€", "", "", "", "😀", "b", ""}));
}

// Invalid UTF-8 is printed unchanged: a continuation without a beginning, a beginning without continuation, one at the
// end, and bytes that never occur.
TEST(TextStream, LetsOtherBytesPass) {
  for (const std::string text : {"\x80x", "\xc3x", "x\xe2\x82", "\xff\xfe", "\xc0\x80", "\xf0\x9f\x98"}) {
    TextStream stream;
    EXPECT_EQ(joined(shown(stream, text)), text);
  }
}

// The text ends before the first stop string, of which no part is printed.
TEST(TextStream, EndsInFrontOfAStop) {
  TextStream stream({"END", "\n\n"});
  EXPECT_EQ(joined(shown(stream, "An EN\nd END\n\nmore")), "An EN\nd ");
  EXPECT_TRUE(stream.isStopped());
}

// The beginning of a stop text that is not completed is shown.
TEST(TextStream, ShowsWhatBecomesNoStop) {
  TextStream stream({"abac"});
  EXPECT_EQ(joined(shown(stream, "ababac")), "ab");
  TextStream other({"abac"});
  EXPECT_EQ(joined(shown(other, "aba")), "aba");
  EXPECT_FALSE(other.isStopped());
}

// A stop string within one larger part is found, too.
TEST(TextStream, FindsAStopWithinAPiece) {
  TextStream stream({"."});
  EXPECT_EQ(stream.push("One. Two."), "One");
  EXPECT_EQ(stream.push("Three"), "");
}

} // namespace

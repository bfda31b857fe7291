// Sizes, counts and the learning-rate schedule.

#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "test/expect_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace kiln;

namespace {

TEST(Gpt2Config, HeadsMustDivideTheWidth) {
  expectError([] { verify(Gpt2Config{2, 5, 64, 8, 256}); },
              {"expected the number of heads to divide the width, but got 5 heads and width 64"});
}

TEST(Gpt2Config, SizesMustBePositive) {
  expectError([] { verify(Gpt2Config{0, 4, 64, 8, 256}); }, {"expected 'layers' to be at least 1, but got 0"});
}

// The error for a former name has the new one.
TEST(Gpt2Config, AnUnknownNameListsTheKnownOnes) {
  expectError([] { gpt2Named("seed001"); }, {"but got 'seed001'; did you mean 'annotated'?"});
  expectError([] { gpt2Named("seed004_small"); }, {"but got 'seed004_small'; did you mean 'mlp-first-small'?"});
  expectError([] { gpt2Named("gpt2"); }, {"but got 'gpt2'; did you mean 'd12'?"});
  expectError([] { gpt2Named("d13"); }, {"nano, d2", "mlp-first-small, but got 'd13'; did you mean 'd12'?"});
}

// OpenAI's small model, with its vocabulary, has 124 439 808 parameters.
TEST(Gpt2Config, CountsTheParametersOfGpt2) {
  Gpt2Config config = gpt2Named("d12").config;
  config.vocab = 50257;
  EXPECT_EQ(parameterCount(config), 124439808);
}

// The count by formula is that of the tensors, and all named models are well formed.
TEST(Gpt2Config, FormulaAndTensorsAgree) {
  for (const char *name : {"nano", "d2", "d4", "annotated-small", "mlp-first-small"}) {
    const Network network(gpt2Named(name).config);
    int64_t count = 0;
    for (const Parameter &p : network.parameters().all())
      count += p.count();
    EXPECT_EQ(count, parameterCount(network.config())) << name;
  }
  for (const std::string &name : gpt2Names())
    EXPECT_NO_THROW(verify(gpt2Named(name).config)) << name;
}

// A packed sequence of documents of 3 and 5 tokens. GEMMs with 3660 weights take 6 · 8 · 3660 operations for 8 tokens.
// Attention takes 6 · 2 · 12 for each pair of positions in the two squares, 9 + 25 of 64. One document of full length
// costs as much as a sequence of a stream; padding sees nothing.
TEST(Gpt2Config, CountsOperationsOfPackedDocuments) {
  const Network network(Gpt2Config{2, 2, 12, 8, 17});
  const auto operations = [&](const std::vector<int32_t> &lengths) {
    std::vector<int32_t> ranges;
    int32_t begin = 0;
    for (const int32_t length : lengths) {
      for (int32_t i = 0; i < length; ++i)
        ranges.insert(ranges.end(), {begin, begin + i + 1});
      begin += length;
    }
    ranges.resize(16, begin);
    return network.countFlops({{"ranges", ranges}}, {1, 8});
  };
  EXPECT_EQ(operations({3, 5}), 6 * 8 * 3660 + 144 * (9 + 25));
  EXPECT_EQ(operations({3}), 6 * 8 * 3660 + 144 * 9);
  EXPECT_EQ(operations({8}), network.flops({1, 8}));
  EXPECT_EQ(network.countFlops({}, {1, 8}), 6 * 8 * 3660 + 144 * 64);
}

// Matrices come first in the flat buffers and all others after them; no two overlap.
TEST(ParameterList, DecayedTensorsComeFirst) {
  const Network network(Gpt2Config{2, 2, 12, 8, 17});
  const ParameterList &list = network.parameters();
  int64_t end = 0;
  std::vector<Parameter> byOffset = list.all();
  std::sort(byOffset.begin(), byOffset.end(),
            [](const Parameter &a, const Parameter &b) { return a.offset < b.offset; });
  for (const Parameter &p : byOffset) {
    EXPECT_GE(p.offset, end) << p.name;
    EXPECT_EQ(p.offset % 64, 0) << p.name;
    EXPECT_EQ(p.offset < list.decayedCount(), p.shape.size() == 2) << p.name;
    end = p.offset + p.count();
  }
  EXPECT_LE(end, list.count());
}

TEST(Gpt2Config, TextNeedsBytes) {
  EXPECT_NO_THROW(verifyBytes(gpt2Named("nano").config));
  for (const int64_t vocab : {255, 257, 50257})
    expectError([&] { verifyBytes({4, 4, 64, 8, vocab}); },
                {"expected a vocabulary of 256 for text as bytes, but got " + std::to_string(vocab)});
}

// Every preset is nearest to itself. A size between two presets is nearest to the one with the smaller ratio of
// parameters.
TEST(Gpt2Config, FindsTheNearestName) {
  for (const char *name : {"nano", "d2", "d4", "d6", "d8", "d12", "d24", "d36", "d48"})
    EXPECT_EQ(nearestGpt2(gpt2Named(name).config), name);
  EXPECT_EQ(nearestGpt2({12, 12, 700, 1024}), "d12");
  EXPECT_EQ(nearestGpt2({1, 1, 4, 8}), "d2");
}

// A typing error is reported before it allocates all memory.
TEST(Gpt2Config, SizesBeyondReasonAreAnError) {
  expectError([] { verify(Gpt2Config{1001, 4, 64, 8, 256}); }, {"expected 'layers' to be at most 1000, but got 1001"});
  expectError([] { verify(Gpt2Config{2, 4, int64_t{1} << 62, 8, 256}); },
              {"expected 'width' to be at most 1048576, but got 4611686018427387904"});
  expectError([] { verify(TrainSettings{.batch = 1048577}); },
              {"expected '--batch' to be at most 1048576, but got 1048577"});
}

TrainSettings tenSteps() {
  TrainSettings s;
  s.steps = 10;
  s.warmup = 4;
  s.rate = 1;
  s.finalRate = 0.1;
  return s;
}

TEST(LearningRate, RisesLinearly) {
  for (int step = 0; step < 4; ++step)
    EXPECT_DOUBLE_EQ(learningRate(tenSteps(), step), (step + 1) / 4.0);
}

// After the warm-up it begins at the top, never rises, and ends at its share.
TEST(LearningRate, FallsToItsShare) {
  EXPECT_DOUBLE_EQ(learningRate(tenSteps(), 4), 1);
  for (int step = 5; step < 10; ++step)
    EXPECT_LT(learningRate(tenSteps(), step), learningRate(tenSteps(), step - 1));
  EXPECT_NEAR(learningRate(tenSteps(), 9), 0.1, 1e-15);
}

// The formulas of the other schedules, halfway and at both ends: 6 steps after the warm-up they reach the final share.
TEST(LearningRate, FallsAsTheScheduleSays) {
  TrainSettings s = tenSteps();
  s.schedule = Schedule::cosine;
  EXPECT_DOUBLE_EQ(learningRate(s, 4), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 7), 0.55);
  EXPECT_DOUBLE_EQ(learningRate(s, 10), 0.1);
  s.schedule = Schedule::linear;
  EXPECT_DOUBLE_EQ(learningRate(s, 5), 1 - 0.9 / 6);
  EXPECT_DOUBLE_EQ(learningRate(s, 10), 0.1);
  s.schedule = Schedule::wsd; // the last two of ten steps
  EXPECT_DOUBLE_EQ(learningRate(s, 7), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 8), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 9), 0.1 + 0.9 * (1 - std::sqrt(0.5)));
  s.schedule = Schedule::exponential;
  EXPECT_DOUBLE_EQ(learningRate(s, 4), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 7), std::sqrt(0.1));
  EXPECT_DOUBLE_EQ(learningRate(s, 10), 0.1);
  s.schedule = Schedule::constant;
  EXPECT_DOUBLE_EQ(learningRate(s, 9), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 1), 0.5);
}

// The sequences of a step are the product of two sizes: it fits into 64 bits.
TEST(TrainSettings, MicroBatchesBeyondReasonAreAnError) {
  TrainSettings s = gpt2Named("nano").settings;
  s.accumulate = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(errorOf([&] { verify(s); }), "expected '--accumulate' to be at most 1048576, but got 9223372036854775807");
}

TEST(TrainSettings, OutOfRangeIsAnError) {
  TrainSettings s = tenSteps();
  s.batch = 0;
  expectError([&] { verify(s); }, {"expected '--batch' to be at least 1, but got 0"});
  s.batch = 1;
  s.beta2 = 1;
  expectError([&] { verify(s); }, {"'--beta2'", "but got 1"});
}

} // namespace

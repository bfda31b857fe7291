// Pairs as micro-batches: their shapes, order and content.

#include "models/data/batches.h"
#include "models/data/pairs.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace kiln;

namespace {

constexpr PairMarks marks = {.begin = 1, .end = 2, .sourceEnd = 3};

/// Pairs of lengths that a formula gives; each begins with its number.
std::vector<TokenPair> pairsOf(int32_t count) {
  std::vector<TokenPair> pairs;
  for (int32_t i = 0; i < count; ++i) {
    pairs.push_back({std::vector<int32_t>(1 + i * 7 % 5, 100 + i), std::vector<int32_t>(1 + i * 11 % 6, 100 + i)});
  }
  return pairs;
}

/// The numbers of the pairs in a batch.
std::multiset<int32_t> numbersIn(const HostBatch &batch) {
  std::multiset<int32_t> numbers;
  const std::vector<int32_t> tokens = batch.at("source tokens").numbers<int32_t>();
  for (int64_t b = 0; b < batch.shape->sequences; ++b)
    numbers.insert(tokens[b * batch.shape->source] - 100);
  return numbers;
}

// A source is followed by its mark and padding, which its range excludes. A sequence follows its begin mark. Its
// targets are the next tokens, the last of them the end mark; later positions have none.
TEST(PairBatches, MarkAndPad) {
  PairBatches batches({{{10, 11}, {20}}, {{12}, {21, 22, 23}}}, marks, {.sequences = 2});
  ASSERT_EQ(batches.batches(), 1);
  const HostBatch batch = batches.batch(0);
  EXPECT_EQ(batch.shape, (BatchShape{2, 4, 3}));
  EXPECT_EQ(batch.at("source tokens").numbers<int32_t>(), (std::vector<int32_t>{10, 11, 3, 12, 3, 3}));
  EXPECT_EQ(batch.at("source ranges").numbers<int32_t>(), (std::vector<int32_t>{0, 3, 0, 2}));
  EXPECT_EQ(batch.at("tokens").numbers<int32_t>(), (std::vector<int32_t>{1, 20, 2, 2, 1, 21, 22, 23}));
  constexpr int32_t none = ignoredTarget;
  EXPECT_EQ(batch.at("targets").numbers<int32_t>(), (std::vector<int32_t>{20, 2, none, none, 21, 22, 23, 2}));
  EXPECT_EQ(batches.targets(0), 6);
}

// An epoch has every pair once, in batches within both limits, with the shapes of every other epoch.
TEST(PairBatches, APassHasEveryPairOnce) {
  PairBatches batches(pairsOf(90), marks, {.sequences = 7, .places = 30}, 5);
  const std::vector<BatchShape> shapes = batches.shapes();
  for (int64_t pass = 0; pass < 3; ++pass) {
    std::multiset<int32_t> all;
    for (int64_t i = 0; i < batches.batches(); ++i) {
      const HostBatch batch = batches.batch(pass * batches.batches() + i);
      EXPECT_EQ(batches.shape(pass * batches.batches() + i), batch.shape);
      all.merge(numbersIn(batch));
      EXPECT_LE(batch.shape->sequences, 7);
      EXPECT_LE(std::max(batch.shape->targets(), batch.shape->sources()), 30);
      EXPECT_TRUE(std::find(shapes.begin(), shapes.end(), *batch.shape) != shapes.end());
    }
    EXPECT_EQ(all.size(), 90u);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), 90u);
  }
}

// Epochs differ, also in the grouping of pairs of equal lengths. A batch is a function of the seed and its number, in
// any order of requests.
TEST(PairBatches, AreDrawnByTheirNumbers) {
  PairBatches one(pairsOf(90), marks, {.sequences = 2}, 5), other(pairsOf(90), marks, {.sequences = 2}, 5);
  std::set<std::multiset<int32_t>> first, second;
  for (int64_t i = 0; i < one.batches(); ++i) {
    first.insert(numbersIn(one.batch(i)));
    second.insert(numbersIn(one.batch(one.batches() + i)));
  }
  EXPECT_NE(first, second);
  for (int64_t i = 2 * other.batches(); i-- > 0;)
    EXPECT_EQ(numbersIn(other.batch(i)), numbersIn(one.batch(i))) << i;
}

// A pair that does not fit in a micro-batch is an error.
TEST(PairBatches, RefuseWhatDoesNotFit) {
  expectError([] { PairBatches({}, marks, {.sequences = 1}); }, {"expected at least one pair", "none"});
  expectError([] { PairBatches({{{1, 2, 3}, {1}}}, marks, {.sequences = 1, .places = 3}); },
              {"expected sequences of at most 3 tokens", "but got one of 4"});
}

} // namespace

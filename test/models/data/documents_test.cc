// Documents alone in their sequences.

#include "models/data/documents.h"
#include "test/expect_error.h"

#include <algorithm>

using namespace kiln;

namespace {

constexpr int32_t mark = 99, none = ignoredTarget;

std::shared_ptr<const Documents> documentsOf(const std::vector<int32_t> &tokens, int64_t context) {
  return std::make_shared<Documents>(std::make_shared<MemoryTokens<int32_t>>(tokens), mark, context, "file");
}

// A sequence begins with the mark and ends with the next one as its last target; the rest is padding without targets.
// What stands before the first mark is no document, and a long one is cut where a sequence is full.
TEST(Documents, AreAloneInTheirSequences) {
  const auto documents = documentsOf({7, mark, 1, 2, mark, mark, 3, 4, 5, 6, 8, mark, 9}, 4);
  ASSERT_EQ(documents->sequences(), 5);
  Batch batch = documents->padding(5);
  for (int64_t i = 0; i < 5; ++i)
    documents->read(i, batch, i);
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{mark, 1, 2, 0, //
                                                mark, 0, 0, 0, //
                                                mark, 3, 4, 5, //
                                                6,    8, 0, 0, //
                                                mark, 0, 0, 0}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{1,    2,    mark, none, //
                                                 mark, none, none, none, //
                                                 3,    4,    5,    6,    //
                                                 8,    mark, none, none, //
                                                 9,    none, none, none}));
}

// A pass takes every sequence once, each pass in another order, and the targets are counted as they come.
TEST(Documents, APassTakesEachOnce) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 50; ++i) {
    tokens.push_back(mark);
    tokens.insert(tokens.end(), i % 7, i % 90);
  }
  tokens.push_back(mark);
  const auto documents = documentsOf(tokens, 8);
  ASSERT_EQ(documents->sequences(), 50);
  DocumentBatches through(documents, 1), jumped(documents, 1), other(documents, 2);
  const Batch pass = through.sequences(0, 50), next = through.sequences(50, 50);
  const auto sorted = [](const Batch &batch) {
    std::vector<std::vector<int32_t>> rows;
    for (size_t at = 0; at < batch.targets.size(); at += 8)
      rows.emplace_back(batch.targets.begin() + at, batch.targets.begin() + at + 8);
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  EXPECT_NE(pass.targets, next.targets);
  EXPECT_EQ(sorted(pass), sorted(next));
  EXPECT_NE(other.sequences(0, 50).targets, pass.targets);
  const Batch tail = jumped.sequences(70, 20);
  EXPECT_TRUE(std::equal(tail.tokens.begin(), tail.tokens.end(), next.tokens.begin() + 20 * 8));
  EXPECT_EQ(jumped.targets(70, 20), 160 - std::count(tail.targets.begin(), tail.targets.end(), none));
}

TEST(Documents, AStreamWithoutMarksIsAnError) {
  expectError([] { documentsOf({1, 2, 3}, 4); },
              {"expected documents in 'file', each of which begins with token 99, but there are none"});
}

} // namespace

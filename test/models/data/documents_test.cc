// Documents alone in their sequences.

#include "models/data/batches.h"
#include "models/data/documents.h"
#include "models/data/pairs.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace kiln;

namespace {

constexpr int32_t mark = 99, none = ignoredTarget;

std::shared_ptr<const Documents> documentsIn(const std::vector<int32_t> &tokens, int64_t context,
                                             const Packing &packing = {}, std::optional<int32_t> end = {}) {
  const auto stream = std::make_shared<MemoryTokens<int32_t>>(tokens);
  return std::make_shared<Documents>(stream, findDocuments(*stream, {mark, end}, "'file'"), context, packing);
}

/// Rows of a batch, each of that length.
std::vector<std::vector<int32_t>> rowsOf(const std::vector<int32_t> &numbers, int64_t width) {
  std::vector<std::vector<int32_t>> rows;
  for (auto at = numbers.begin(); at != numbers.end(); at += width)
    rows.emplace_back(at, at + width);
  return rows;
}

Batch allRows(const Documents &documents) {
  Batch batch = documents.padding(documents.sequences());
  for (int64_t i = 0; i < documents.sequences(); ++i)
    documents.read(i, batch, i);
  return batch;
}

/// 50 documents of 0 to 96 tokens after their marks.
std::vector<int32_t> manyDocuments() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 50; ++i) {
    tokens.push_back(mark);
    for (int32_t j = 0; j < i * 37 % 97; ++j)
      tokens.push_back((i + j) % 90);
  }
  tokens.push_back(mark);
  return tokens;
}

// A sequence begins with the mark and ends with the next mark as its last target; the rest is padding without targets.
// Tokens before the first mark are no document. A long document is cut when a sequence is full.
TEST(Documents, AreAloneInTheirSequences) {
  const auto documents = documentsIn({7, mark, 1, 2, mark, mark, 3, 4, 5, 6, 8, mark, 9}, 4);
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

// An epoch has every sequence once, each epoch in another order, and targets are counted batch by batch.
TEST(Documents, APassTakesEachOnce) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 50; ++i) {
    tokens.push_back(mark);
    tokens.insert(tokens.end(), i % 7, i % 90);
  }
  tokens.push_back(mark);
  const auto documents = documentsIn(tokens, 8);
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

// A document that ends with its own end token does not predict the next one's beginning.
TEST(Documents, EndsAreTheLastTargets) {
  constexpr int32_t end = 98;
  const auto documents = documentsIn({mark, 1, end, mark, end, mark, 2, 3, mark, end, 7}, 4, {}, end);
  EXPECT_EQ(rowsOf(allRows(*documents).targets, 4),
            (std::vector<std::vector<int32_t>>{
                {1, end, none, none}, {end, none, none, none}, {2, 3, mark, none}, {end, 7, none, none}}));
}

// A row takes another document while it is filled below the threshold. The rest of a document continues in the next
// row. In the order of the stream, every target occurs once.
TEST(Documents, ArePackedUpToAShare) {
  const auto documents = documentsIn({mark, 1, mark, 2, 3, mark, 4, 5, 6, mark, 7, mark}, 4, {.share = 0.75});
  const Batch batch = allRows(*documents);
  EXPECT_EQ(rowsOf(batch.tokens, 4),
            (std::vector<std::vector<int32_t>>{{mark, 1, mark, 2}, {3, mark, 4, 5}, {6, mark, 7, 0}}));
  EXPECT_EQ(rowsOf(batch.targets, 4),
            (std::vector<std::vector<int32_t>>{{1, mark, 2, 3}, {mark, 4, 5, 6}, {mark, 7, mark, none}}));
  EXPECT_EQ(rowsOf(batch.positions, 4), (std::vector<std::vector<int32_t>>{{0, 1, 0, 1}, {0, 0, 1, 2}, {0, 0, 1, 0}}));
  EXPECT_EQ(documents->targets(2), 3);
}

// Comparison with a visibility matrix made position by position from the documents. Ranges by rows and by columns agree
// with it, neither bound decreases, and padding neither sees nor is seen.
TEST(Documents, RangesSayWhatEachPlaceSees) {
  const int64_t T = 32;
  const auto documents = documentsIn(manyDocuments(), T, {.share = 0.75, .seed = 3});
  const Batch batch = allRows(*documents);
  for (int64_t row = 0; row < documents->sequences(); ++row) {
    const auto at = [&](const std::vector<int32_t> &numbers, int64_t i) { return numbers[row * T + i]; };
    const auto pair = [&](const std::vector<int32_t> &numbers, int64_t i, int64_t which) {
      return numbers[2 * (row * T + i) + which];
    };
    std::vector<int64_t> begins; // of the document that each place belongs to; −1: padding
    for (int64_t i = 0; i < T; ++i)
      begins.push_back(at(batch.targets, i) == none ? -1 : at(batch.positions, i) == 0 ? i : begins.back());
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t j = 0; j < T; ++j) {
        const bool sees = begins[i] >= 0 && begins[i] == begins[j] && j <= i;
        EXPECT_EQ(pair(batch.ranges, i, 0) <= j && j < pair(batch.ranges, i, 1), sees) << i << " " << j;
        EXPECT_EQ(pair(batch.queryRanges, j, 0) <= i && i < pair(batch.queryRanges, j, 1), sees) << i << " " << j;
      }
      for (const auto *ranges : {&batch.ranges, &batch.queryRanges})
        for (const int64_t which : {0, 1}) {
          EXPECT_LE(pair(*ranges, i, 0), pair(*ranges, i, 1));
          if (i > 0) {
            EXPECT_LE(pair(*ranges, i - 1, which), pair(*ranges, i, which)) << i;
          }
        }
    }
  }
}

// In any order, packed rows have the targets of the single documents. Each row except the last is filled at least to
// the threshold.
TEST(Documents, PackedRowsHaveEveryTarget) {
  const auto alone = documentsIn(manyDocuments(), 32);
  const auto targetsOf = [](const Documents &documents) {
    std::vector<int32_t> targets = allRows(documents).targets;
    std::erase(targets, none);
    std::sort(targets.begin(), targets.end());
    return targets;
  };
  for (const double share : {0.1, 0.75, 1.0}) {
    const auto packed = documentsIn(manyDocuments(), 32, {.share = share, .seed = 5});
    EXPECT_LT(packed->sequences(), alone->sequences());
    EXPECT_EQ(targetsOf(*packed), targetsOf(*alone));
    for (int64_t i = 0; i + 1 < packed->sequences(); ++i)
      EXPECT_GE(static_cast<double>(packed->targets(i)), share * 32);
  }
}

// Packed rows are a function of the seed and the number, wherever a reader begins.
TEST(Documents, PackedPassesGoOnAnywhere) {
  const auto made = [] { return documentsIn(manyDocuments(), 32, {.share = 0.75, .seed = 5}); };
  DocumentBatches through(made(), 5), jumped(made(), 5);
  const int64_t rows = made()->sequences();
  const Batch all = through.sequences(0, 3 * rows), some = jumped.sequences(2 * rows - 1, 2);
  EXPECT_EQ(some.tokens,
            std::vector<int32_t>(all.tokens.begin() + (2 * rows - 1) * 32, all.tokens.begin() + (2 * rows + 1) * 32));
  EXPECT_EQ(some.ranges, std::vector<int32_t>(all.ranges.begin() + 2 * (2 * rows - 1) * 32,
                                              all.ranges.begin() + 2 * (2 * rows + 1) * 32));
}

// An index is read from its file for an equal stream and equal marks, but not if it is damaged or of another stream.
TEST(Documents, AnIndexIsKeptInAFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "documents.index";
  const MemoryTokens<int32_t> stream(manyDocuments()), empty(std::vector<int32_t>(stream.size(), 0));
  const std::vector<DocumentPlace> places = locateDocuments(stream, {mark}, "'file'", path, 1);
  EXPECT_EQ(places, findDocuments(stream, {mark}, "'file'"));
  EXPECT_EQ(locateDocuments(empty, {mark}, "'file'", path, 1), places); // not looked for again
  for (const auto &[marks, hash] : {std::pair(DocumentMarks{mark}, uint64_t{2}), {DocumentMarks{mark, 5}, 1}})
    expectError([&, &marks = marks, &hash = hash] { locateDocuments(empty, marks, "'file'", path, hash); },
                {"there are none"});
  const std::string whole = readText(path);
  writeText(path, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(locateDocuments(stream, {mark}, "'file'", path, 1), places);
  EXPECT_EQ(readText(path), whole);
}

TEST(Documents, AStreamWithoutMarksIsAnError) {
  expectError([] { documentsIn({1, 2, 3}, 4); },
              {"expected documents in 'file', each of which begins with token 99, but there are none"});
}

// --- Pairs as micro-batches: their shapes, order and content ---------------------------------------------------------

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

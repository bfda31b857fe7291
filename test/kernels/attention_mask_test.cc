// Masks of attention against the plain formulas in double precision: unequal lengths, grouped heads (GQA), ranges and
// free masks.

#include "kernels/plain_attention.h"
#include "test/expect_error.h"
#include "test/kernels/attention_problem.h"

namespace kiln {
namespace {

class AttentionMaskTest : public AttentionProblemTest {};

// Fewer and more keys than queries: the last query sees the last key. With fewer keys, the first queries see none.
TEST_P(AttentionMaskTest, LengthsThatDiffer) {
  for (const bool causal : {true, false})
    for (const auto &[Tq, Tk] :
         taken<std::pair<int, int>>(GetParam(), {{20, 50}, {50, 20}, {1, 37}, {37, 1}, {33, 34}}, 2)) {
      checkBoth(problem({1, 1, 1, Tq, Tk, 8}, causal));
      if (Tk == 50)
        check(problem({1, 2, 2, Tq, Tk, 16}, causal), {});
    }
}

// Several query heads share one key head, whose gradients are the sums of all.
TEST_P(AttentionMaskTest, GroupedHeads) {
  for (const bool causal : {true, false})
    for (const auto &[H, Hk] : taken<std::pair<int, int>>(GetParam(), {{4, 2}, {3, 1}}, causal ? 1 : 0)) {
      checkBoth(problem({1, H, Hk, 37, 37, 8}, causal));
      check(problem({2, H, Hk, 20, 30, 8}, causal), {});
    }
}

/// Causal within documents of these lengths; queries after the last one see no key.
Ranges packed(std::initializer_list<int> lengths, int64_t T) {
  Ranges ranges;
  int32_t begin = 0;
  for (const int length : lengths) {
    for (int32_t i = 0; i < length; ++i)
      ranges.insert(ranges.end(), {begin, begin + i + 1});
    begin += length;
  }
  while (static_cast<int64_t>(ranges.size()) < 2 * T)
    ranges.insert(ranges.end(), {begin, begin});
  return ranges;
}

/// Bounds that rise by chance, some ranges empty.
Ranges monotone(int64_t Tq, int64_t Tk, std::mt19937 &random) {
  Ranges ranges;
  int32_t begin = 0, end = 0;
  for (int64_t i = 0; i < Tq; ++i) {
    end = static_cast<int32_t>(std::min<int64_t>(Tk, end + random() % 5));
    begin = std::min<int32_t>(end, begin + random() % 4);
    ranges.insert(ranges.end(), {begin, end});
  }
  return ranges;
}

// Packed documents, windows, prefixes, padding and random nondecreasing bounds, different in each sequence.
TEST_P(AttentionMaskTest, EveryKindOfRange) {
  constexpr int32_t T = 53;
  Ranges window, prefix, padding;
  for (int32_t i = 0; i < T; ++i) {
    window.insert(window.end(), {std::max(0, i - 9), i + 1});
    prefix.insert(prefix.end(), {0, std::max(21, i + 1)});
    padding.insert(padding.end(), {i < 40 ? 0 : 40, 40});
  }
  for (const Ranges &ranges :
       taken<Ranges>(GetParam(), {packed({20, 1, 17, 10}, T), monotone(T, T, random), window, prefix, padding}, 2)) {
    Problem p = problem({1, 2, 1, T, T, 8}, false);
    setRanges(p, ranges);
    checkBoth(p);
  }
  Problem p = problem({2, 1, 1, T, T, 16}, false);
  Ranges both = packed({30, 23}, T);
  both.insert(both.end(), window.begin(), window.end());
  setRanges(p, both);
  check(p, {});
}

// Ranges unrelated to the queries' positions, also with the causal mask; a key is visible if both permit it.
TEST_P(AttentionMaskTest, RangesOfOtherKeysAndTheTriangle) {
  for (const bool causal : {true, false})
    for (const auto &[Tq, Tk] :
         taken<std::pair<int, int>>(GetParam(), {{41, 60}, {60, 41}, {1, 30}, {30, 1}}, causal ? 1 : 0)) {
      Problem p = problem({1, 1, 1, Tq, Tk, 8}, causal);
      setRanges(p, monotone(Tq, Tk, random));
      checkBoth(p);
    }
}

// An arbitrary mask, one for each head or one for several, with queries that see no key; alone, with a causal mask, and
// with ranges.
TEST_P(AttentionMaskTest, FreeMasks) {
  for (const auto &[B, H] : taken<std::pair<int, int>>(GetParam(), {{1, 2}, {2, 2}, {2, 1}, {1, 1}}, 1)) {
    Problem p = problem({2, 2, 1, 19, 37, 8}, /*causal=*/B == H);
    setMask(p, B, H, randomMask(B * H, 19, 37));
    checkBoth(p);
  }
  Problem p = problem({1, 1, 1, 40, 40, 8}, false);
  setMask(p, 1, 1, randomMask(1, 40, 40));
  setRanges(p, monotone(40, 40, random));
  checkBoth(p);
  Problem none = problem({1, 1, 1, 20, 20, 8}, false);
  setMask(none, 1, 1, std::vector<double>(400, 0));
  checkBoth(none);
}

// Documents packed into one sequence have the results of each alone.
TEST_P(AttentionMaskTest, PackedDocumentsAreAsAlone) {
  constexpr int64_t T = 64, D = 8;
  Problem p = problem({1, 1, 1, T, T, D}, false);
  setRanges(p, packed({24, 40}, T));
  launch(p, tiles(false));
  int64_t begin = 0;
  for (const int64_t length : {24, 40}) {
    Problem alone = problem({1, 1, 1, length, length, D}, true);
    for (const auto &[from, to] :
         {std::pair(&p.q, &alone.q), {&p.k, &alone.k}, {&p.v, &alone.v}, {&p.dout, &alone.dout}}) {
      to->values.assign(from->values.begin() + begin * D, from->values.begin() + (begin + length) * D);
      to->reset();
    }
    launch(alone, tiles(false));
    for (const auto &[all, one] :
         {std::pair(&p.o, &alone.o), {&p.dq, &alone.dq}, {&p.dk, &alone.dk}, {&p.dv, &alone.dv}}) {
      const auto got = all->read(), want = one->read();
      std::vector<Want> wants;
      for (const double value : want)
        wants.push_back({value, 8 * unit(type()) * std::abs(value) + 1e-6});
      expectClose("packed", {got.begin() + begin * D, got.begin() + (begin + length) * D}, wants, type());
    }
    begin += length;
  }
}

// Sums over grouped heads have a fixed order: the same bits on any number of threads.
TEST_P(AttentionMaskTest, GroupsAreDeterministic) {
  Problem p = problem({1, 4, 2, 40, 40, 8}, true);
  launch(p, {});
  p.o.values = p.o.read();
  p.lse.values = p.lse.read();
  const AttentionSaved saved = {p.q, p.k, p.v, p.o, p.lse, p.dout};
  for (const bool whole : {true, false})
    expectSameBits(planAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask, tiles(whole)),
                   {&p.dq, &p.dk, &p.dv});
}

// A kernel reports ranges that decrease or exceed the keys, at any query.
TEST_P(AttentionMaskTest, RangesAreChecked) {
  Problem p = problem({1, 1, 1, 40, 40, 8}, false);
  setRanges(p, packed({40}, 40));
  const Ranges right = p.ranges;
  const auto messageOf = [&](int64_t at, int32_t begin, int32_t end) {
    p.held[0].values.assign(right.begin(), right.end());
    p.held[0].values[2 * at] = begin;
    p.held[0].values[2 * at + 1] = end;
    p.held[0].reset();
    return errorOf([&] { run(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, tiles(true))); });
  };
  const char *const outside = "expected ranges that lie within the rows or columns";
  EXPECT_NE(messageOf(39, 0, 41).find(outside), std::string::npos);
  EXPECT_NE(messageOf(0, -1, 1).find(outside), std::string::npos);
  EXPECT_NE(messageOf(20, 22, 21).find(outside), std::string::npos);
  for (const int64_t at : {5, 16, 32}) // also across blocks
    EXPECT_NE(messageOf(at, 0, 0).find("expected ranges that do not decrease"), std::string::npos) << at;
}

KILN_ON_PRODUCT_MACHINES(AttentionMaskTest);

// The ranges of columns are those rows whose ranges hold the column, for random ranges.
TEST(ColumnRanges, AreTheRowsThatSeeAColumn) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto Tq = static_cast<int64_t>(1 + random() % 20), Tk = static_cast<int64_t>(1 + random() % 20);
    Ranges ranges = monotone(Tq, Tk, random);
    const Ranges second = monotone(Tq, Tk, random);
    ranges.insert(ranges.end(), second.begin(), second.end());
    const Ranges columns = queryRanges(ranges, Tq, Tk);
    ASSERT_EQ(columns.size(), static_cast<size_t>(4 * Tk));
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < Tq; ++i)
        for (int64_t j = 0; j < Tk; ++j) {
          const int32_t *row = &ranges[2 * (b * Tq + i)], *column = &columns[2 * (b * Tk + j)];
          EXPECT_EQ(row[0] <= j && j < row[1], column[0] <= i && i < column[1]) << i << " " << j;
        }
  }
}

// The error for invalid ranges names their row and the expected values.
TEST(ColumnRanges, TellWhatIsWrong) {
  EXPECT_EQ(errorOf([] { queryRanges({0, 1, 0, 5}, 2, 4); }),
            "'queryRanges': expected the range of row 1 to lie within 0 to 4 and not to end before it begins, but "
            "got 0 to 5");
  EXPECT_EQ(errorOf([] { queryRanges({0, 2, 0, 1}, 2, 4); }),
            "'queryRanges': expected the range of row 1 not to begin or end before the range of the row above, 0 to "
            "2, but got 0 to 1");
  EXPECT_EQ(errorOf([] { queryRanges({0, 2, 0}, 2, 4); }),
            "'queryRanges': expected two numbers for each of 2 rows, but got 3");
}

// --- Dropout of weights ----------------------------------------------------------------------------------------------

// Dropout of attention's weights, forward and backward, compared with the plain formulas with the same dropped weights.
// These follow one by one from the definition in kernels/dropout_rng.h.

class AttentionDropoutTest : public AttentionProblemTest {
protected:
  static constexpr int64_t key = -0x123456789ABCDEF;
};

// Under every tile: those that numbers of Philox fit, more than a unit of 128 wide, and those that cut them anywhere.
TEST_P(AttentionDropoutTest, DropsTheDefinitionsUnderEveryTile) {
  for (const auto &[bm, bn] :
       taken<std::pair<int, int>>(GetParam(), {{16, 64}, {16, 16}, {32, 16}, {16, 128}, {8, 24}, {16, 48}}, 1)) {
    Problem p = problem({2, 2, 2, 37, 37, 8}, true);
    setDropout(p, {0.3}, key, 5, 150);
    check(p, tiles(true, bm, bn));
  }
}

// In each form of attention, inverted and plain, and with the tiles of a plan.
TEST_P(AttentionDropoutTest, DropsTheDefinitionsInEveryForm) {
  Problem grouped = problem({2, 4, 2, 21, 21, 8}, true), windows = problem({1, 2, 2, 53, 53, 8}, false);
  Ranges ranges;
  for (int32_t i = 0; i < 53; ++i)
    ranges.insert(ranges.end(), {std::max(0, i - 9), i + 1});
  setRanges(windows, ranges);
  setDropout(windows, {0.2}, key, 3, 64);
  checkBoth(windows);
  setDropout(grouped, {0.2, DropoutKind::plain}, key, 3, 64);
  check(grouped, {});
  if (!takesAll(GetParam()))
    return;
  checkBoth(grouped);
  Problem fewer = problem({1, 1, 1, 20, 50, 8}, true), some = problem({1, 2, 2, 19, 37, 8}, false);
  setDropout(fewer, {0.2, DropoutKind::plain}, key, 3, 64);
  checkBoth(fewer);
  setMask(some, 1, 2, randomMask(2, 19, 37));
  setDropout(some, {0.2}, key, 3, 64);
  checkBoth(some);
}

// Evaluations drop nothing; with plain dropout they multiply weights by the keep probability.
TEST_P(AttentionDropoutTest, EvaluationsScaleWhatPlainDropoutLeft) {
  for (const DropoutKind kind : {DropoutKind::inverted, DropoutKind::plain}) {
    Problem p = problem({1, 2, 2, 20, 20, 8}, true);
    p.mask.dropout = Dropout{{0.25, kind}, {}, 20, 20};
    EXPECT_EQ(p.kept(0, 0, 0, 0), kind == DropoutKind::plain ? 0.75 : 1);
    checkBoth(p);
  }
}

// A weight that is dropped, alone of its row, is not missing from the denominator: lse is that of all.
TEST_P(AttentionDropoutTest, LeavesTheDenominator) {
  Problem p = problem({1, 1, 1, 33, 33, 8}, true);
  launch(p, tiles(true));
  const std::vector<double> without = p.lse.read();
  setDropout(p, {0.9}, key, 0, 33);
  launch(p, tiles(true));
  expectEqual("lse", p.lse.read(), without);
}

KILN_ON_PRODUCT_MACHINES(AttentionDropoutTest);

// --- Plain attention -------------------------------------------------------------------------------------------------

// Plain attention, whose weights are matrices in memory, with each option of flash attention, compared with the same
// formulas.

class PlainAttentionTest : public AttentionProblemTest {
protected:
  void checkPlain(const Problem &p) {
    const ProblemSize &s = p.s;
    SCOPED_TRACE(testing::Message() << s.B << " x " << s.H << " of " << s.Hk << ", " << s.Tq << " see " << s.Tk
                                    << (p.mask.causal ? " causal" : "") << (p.mask.dropout ? " dropped" : ""));
    const Array weights = unwritten({s.B, s.H, s.Tq, s.Tk}, f32);
    run(planPlainAttention(target(), p.q, p.k, p.v, p.o, weights, p.scale(), p.mask));
    const PlainAttentionSaved saved = {p.q, p.k, p.v, weights, p.dout};
    run(planPlainAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask));
    expectRight(p, /*hasSums=*/false);
  }
};

// Short and long rows, and head sizes that tiles do not divide.
TEST_P(PlainAttentionTest, EveryExtent) {
  for (const ProblemSize &s :
       taken<ProblemSize>(GetParam(), {{2, 3, 3, 37, 37, 7}, {1, 1, 1, 1, 1, 8}, {1, 1, 1, 70, 70, 64}}, 1))
    for (const bool causal : {true, false})
      checkPlain(problem(s, causal));
}

// Different lengths, grouped heads, ranges, arbitrary masks with rows that see nothing, and dropout of each kind.
TEST_P(PlainAttentionTest, EveryForm) {
  checkPlain(problem({1, 2, 2, 20, 50, 8}, true));
  checkPlain(problem({1, 4, 2, 40, 20, 8}, true));
  Problem windows = problem({1, 2, 2, 33, 33, 8}, false), some = problem({2, 2, 1, 19, 37, 8}, false);
  Ranges ranges;
  for (int32_t i = 0; i < 33; ++i)
    ranges.insert(ranges.end(), {std::max(0, i - 9), i + 1});
  setRanges(windows, ranges);
  setDropout(windows, {0.2}, 77, 3, 64);
  checkPlain(windows);
  setMask(some, 1, 2, randomMask(2, 19, 37));
  checkPlain(some);
  Problem plain = problem({1, 3, 1, 21, 21, 8}, true);
  setDropout(plain, {0.2, DropoutKind::plain}, 77, 3, 64);
  checkPlain(plain);
  plain.mask.dropout->rngState = {};
  checkPlain(plain);
}

KILN_ON_PRODUCT_MACHINES(PlainAttentionTest);

// Weights are a matrix of f32 for each head.
TEST(PlainAttention, WantsItsWeights) {
  const TensorRef heads = TensorRef::dense(nullptr, f32, {2, 3, 10, 64});
  EXPECT_EQ(errorOf([&] {
              planPlainAttention(Target(), heads, heads, heads, heads, TensorRef::dense(nullptr, f32, {2, 3, 10}), 1);
            }),
            "'plain_attention': expected 'weights' of shape 2x3x10x10, but got 2x3x10");
}

} // namespace
} // namespace kiln

// Dropout of attention's weights, forward and backward, compared with the plain formulas with the same dropped weights.
// These follow one by one from the definition in kernels/dropout_rng.h.

#include "test/kernels/attention_problem.h"

namespace kiln {
namespace {

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

} // namespace
} // namespace kiln

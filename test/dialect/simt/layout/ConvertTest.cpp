// Which means a conversion takes.

#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Fragments.h"
#include "test/dialect/simt/layout/Random.h"

#include <gtest/gtest.h>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

// The plan is the one that the tier names; the tier is the cheapest that is possible, but that shared memory is taken
// when it is fewer passes, for elements which do not fill words, or fewer instructions, barriers included.
TEST(Convert, TakesTheCheapestMeans) {
  Random random(1);
  unsigned preferred = 0;
  for (unsigned round = 0; round < 500; ++round) {
    const auto sizes = random.sizes();
    const TileLayout from = random.layout(sizes, 1), to = random.layout(sizes, 1);
    const unsigned bits = 8u << random.below(4);
    const SharedLimits limits;
    const ConvertPlan plan = planConvert(from, to, bits, limits);
    ASSERT_EQ(plan.isShared(), std::holds_alternative<SharedPlan>(plan.how));
    if (plan.tier == tierOf(from, to))
      continue;
    ++preferred;
    ASSERT_EQ(tierOf(from, to), Tier::shuffle);
    ASSERT_TRUE(plan.isShared());
    const auto shuffle = planShuffle(from, to, bits);
    const bool fillsWords = bits << shuffle->target.element.size() >= 32;
    ASSERT_LT(plan.shared().wavefronts() + (fillsWords ? barriersWorth : 0),
              fillsWords ? shuffle->instructions(bits) : shuffle->shuffles(bits));
  }
  EXPECT_GT(preferred, 0u);
}

// Words that are full are never more passes by shuffles than by shared memory.
TEST(Convert, FullWordsAreFewShuffles) {
  Random random(2);
  for (unsigned round = 0; round < 500; ++round) {
    const auto sizes = random.sizes();
    const TileLayout from = random.layout(sizes, 1), to = random.layout(sizes, 1);
    if (const auto shuffle = planShuffle(from, to, 32)) {
      ASSERT_LE(shuffle->shuffles(32), planShared(from, to, 32, {}).wavefronts()) << from.text() << " -> " << to.text();
    }
  }
}

// A blocked tile of a warp becomes an operand of products by a store and `ldmatrix`, however well shuffles could do it:
// each of 64 words would be selected by several bits of the lane, before and after.
TEST(Convert, OperandsOfAWarpGoThroughMemory) {
  const TileLayout blockedTile = blocked({64, 64}, {1, 0}, {1, 8}, 1), acc = mmaAcc(16, 64, {1, 1}, 1);
  const TileLayout operand = mmaOperand(acc, MmaOperand::B, 64, {16, 16});
  EXPECT_EQ(tierOf(blockedTile, operand), Tier::shuffle);
  EXPECT_GT(planShuffle(blockedTile, operand, 16)->instructions(16), 300u);
  EXPECT_TRUE(planConvert(blockedTile, operand, 16, {}).isShared());
}

// Between accumulator and operand of 16 bits there is nothing to do, and none of 32 bits leaves its thread if terms are
// taken in the accumulator's order.
TEST(Convert, AccumulatorsAreOperands) {
  const TileLayout acc = mmaAcc(64, 80, {4, 1}, 4);
  EXPECT_EQ(planConvert(acc, mmaOperand(acc, MmaOperand::A, 80, {16, 16}), 16, {}).tier, Tier::identity);
  EXPECT_EQ(planConvert(acc, mmaOperand(acc, MmaOperand::A, 80, {32, 8}, KOrder::accumulator), 32, {}).tier,
            Tier::rename);
  EXPECT_EQ(planConvert(acc, mmaOperand(acc, MmaOperand::A, 80, {32, 8}), 32, {}).tier, Tier::shuffle);
}

} // namespace

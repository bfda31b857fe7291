// Which means a conversion takes.

#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "test/dialect/simt/layout/Random.h"

#include <gtest/gtest.h>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

// The plan is the one that the tier names; the tier is the cheapest that is possible, but that elements which do not
// fill words may take shared memory, when that is fewer passes.
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
    ASSERT_LT(bits, 32u);
    ASSERT_LT(plan.shared().wavefronts(), planShuffle(from, to, bits)->shuffles(bits));
  }
  EXPECT_GT(preferred, 0u);
}

// Words that are full never do better by shared memory.
TEST(Convert, FullWordsAreShuffled) {
  Random random(2);
  for (unsigned round = 0; round < 500; ++round) {
    const auto sizes = random.sizes();
    const TileLayout from = random.layout(sizes, 1), to = random.layout(sizes, 1);
    if (const auto shuffle = planShuffle(from, to, 32)) {
      ASSERT_LE(shuffle->shuffles(32), planShared(from, to, 32, {}).wavefronts()) << from.text() << " -> " << to.text();
    }
  }
}

// Between accumulator and operand of 16 bits there is nothing to do.
TEST(Convert, AccumulatorsAreOperands) {
  const TileLayout acc = mmaAcc(64, 80, {4, 1}, 4);
  EXPECT_EQ(planConvert(acc, mmaOperand(acc, MmaOperand::A, 80, {16, 16}), 16, {}).tier, Tier::identity);
}

} // namespace

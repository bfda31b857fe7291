// Conversions inside warps, executed on labelled values: each element's label is its position.

#include "dialect/simt/layout/Shuffle.h"
#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Fragments.h"
#include "test/dialect/simt/layout/Random.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

constexpr unsigned numWarps = 4;

using Label = std::vector<int64_t>;

Label labelOf(const TileLayout &layout, int64_t stored, unsigned lane, unsigned warp) {
  const auto position = layout.positionOf(stored, {lane, warp});
  return Label(position.begin(), position.end());
}

/// The destination registers of every lane of a warp after the plan, [lane][stored].
std::vector<std::vector<Label>> run(const ShufflePlan &plan, const TileLayout &from, const TileLayout &to,
                                    unsigned warp) {
  std::vector<std::vector<Label>> result(numLanes, std::vector<Label>(static_cast<size_t>(to.numStored())));
  const unsigned elements = 1u << plan.source.element.size();
  for (int64_t repeat = 0; repeat < from.shape().repeats(); ++repeat)
    for (unsigned round = 0; round < plan.rounds(); ++round)
      for (unsigned lane = 0; lane < numLanes; ++lane) {
        const unsigned sender = plan.receivesFrom(round, lane);
        const unsigned word = plan.sends(round, sender, warp);
        for (unsigned element = 0; element < elements; ++element)
          result[lane][(repeat << to.regBits()) + plan.target.of(plan.receivesInto(round, lane), element)] =
              labelOf(from, (repeat << from.regBits()) + plan.source.of(word, element), sender, warp);
      }
  return result;
}

/// Executes the plan in every warp and compares with what the destination holds.
void expectConverts(const ShufflePlan &plan, const TileLayout &from, const TileLayout &to) {
  for (unsigned warp = 0; warp < to.numWarps(); ++warp) {
    const auto got = run(plan, from, to, warp);
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < to.numStored(); ++stored)
        ASSERT_EQ(got[lane][static_cast<size_t>(stored)], labelOf(to, stored, lane, warp))
            << from.text() << "\n-> " << to.text() << "\nlane " << lane << ", stored " << stored;
  }
}

/// The other layout's units anywhere in registers and lanes; warps the same, or standing for what was in registers.
TileLayout shuffled(Random &random, const TileLayout &from) {
  Vecs units(from.bases(Hw::reg));
  for (const Vec lane : from.bases(Hw::lane))
    if (lane != 0)
      units.push_back(lane);
  Vecs warps(from.bases(Hw::warp)), lanes;
  random.shuffle(units);
  for (Vec &warp : warps)
    if (warp == 0 && random.below(2) && !units.empty() && llvm::is_contained(from.bases(Hw::reg), units.back()))
      warp = units.pop_back_val();
  for (unsigned lane = 0; lane < laneBits; ++lane) {
    const Vec same = from.bases(Hw::lane)[lane];
    if (random.below(2) && same != 0 && llvm::is_contained(units, same)) {
      lanes.push_back(same);
      llvm::erase(units, same);
    } else {
      lanes.push_back(units.empty() || random.below(5) == 0 ? 0 : units.pop_back_val());
    }
  }
  return TileLayout::get(from.shape().sizes(), {units, lanes, warps, Vecs()});
}

template <class Body> void forRandomPairs(uint32_t seed, unsigned count, Body body) {
  Random random(seed);
  for (unsigned round = 0; round < count && !testing::Test::HasFailure(); ++round) {
    const TileLayout from = random.layout(random.sizes(), numWarps), to = shuffled(random, from);
    SCOPED_TRACE(from.text() + " -> " + to.text());
    body(random, from, to);
  }
}

// Every plan puts each element where the destination wants it, in elements of any size.
TEST(Shuffle, PlansConvert) {
  std::map<Tier, unsigned> seen;
  forRandomPairs(1, 1500, [&](Random &random, const TileLayout &from, const TileLayout &to) {
    const auto plan = planShuffle(from, to, 8u << random.below(4));
    ++seen[tierOf(from, to)];
    ASSERT_TRUE(plan);
    expectConverts(*plan, from, to);
  });
  for (const Tier tier : {Tier::rename, Tier::select, Tier::shuffle})
    EXPECT_GT(seen[tier], 5u) << nameOf(tier).str();
}

// The number of shuffles is the closed formula's.
TEST(Shuffle, CountIsTheFormula) {
  forRandomPairs(2, 3000, [](Random &random, const TileLayout &from, const TileLayout &to) {
    const unsigned bits = 8u << random.below(3);
    unsigned common = 0, m = 0;
    Vecs both(from.bases(Hw::reg));
    for (const Vec unit : to.bases(Hw::reg)) {
      const bool isCommon = Span(from.bases(Hw::reg)).has(unit);
      common += isCommon;
      m += !isCommon;
      both.push_back(unit);
    }
    const unsigned packed = std::min(common, llvm::Log2_32(32 / bits));
    const unsigned words = 1u << (to.regBits() - packed);
    const bool isLocal =
        llvm::all_of_zip(from.bases(Hw::lane), to.bases(Hw::lane), [&](Vec a, Vec b) { return Span(both).has(a ^ b); });
    EXPECT_EQ(planShuffle(from, to, bits)->shuffles(bits), isLocal ? words - (words >> m) : words);
  });
}

// No plan can do with fewer: a lane receives a word a shuffle, and must receive each element that it did not hold.
TEST(Shuffle, ExchangesAreTheFewestPossible) {
  forRandomPairs(3, 500, [](Random &, const TileLayout &from, const TileLayout &to) {
    const auto plan = planShuffle(from, to, 32);
    int64_t most = 0;
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      std::set<Label> held, missing;
      for (int64_t stored = 0; stored < from.numStored(); ++stored)
        held.insert(labelOf(from, stored, lane, 0));
      for (int64_t stored = 0; stored < to.numStored(); ++stored)
        if (const Label label = labelOf(to, stored, lane, 0); held.count(label) == 0)
          missing.insert(label);
      most = std::max(most, static_cast<int64_t>(missing.size()));
    }
    const int64_t shuffles = from.shape().repeats() * plan->shuffles(32);
    EXPECT_GE(shuffles, most);
    if (plan->fromLane == F2Map::identity(laneBits)) {
      EXPECT_EQ(shuffles, most);
    }
  });
}

// Below Tier::shuffle nothing goes to another lane, and below Tier::select no word depends on lane or warp.
TEST(Shuffle, TiersSayWhatPlansNeed) {
  forRandomPairs(4, 1500, [](Random &, const TileLayout &from, const TileLayout &to) {
    const auto plan = planShuffle(from, to, 32);
    const Tier tier = tierOf(from, to);
    const auto isZero = [](const F2Map &map) { return map.rank() == 0; };
    EXPECT_EQ(plan->shuffles(32) == 0, tier < Tier::shuffle);
    if (tier < Tier::select) {
      EXPECT_TRUE(isZero(plan->intoWord) && isZero(plan->givenWord) && isZero(plan->warpWord));
    }
    EXPECT_EQ(tier == Tier::identity, from == to);
  });
}

// A unit that goes to or comes from another warp makes the tier shared.
TEST(Shuffle, OtherWarpsNeedSharedMemory) {
  const TileLayout rows = blocked({64, 64}, {1, 0}, {1, 4}, 4), columns = blocked({64, 64}, {0, 1}, {4, 1}, 4);
  EXPECT_EQ(tierOf(rows, columns), Tier::shared);
  EXPECT_EQ(planShuffle(rows, columns, 32), std::nullopt);
}

// Known counts for tensor-core layouts of 128 × 64 elements of 32 bits by four warps, 64 words per thread.
TEST(Shuffle, KnownCounts) {
  const TileLayout acc = mmaAcc(128, 64, {4, 1}, 4);
  const auto A = [&](MmaShape mma) { return mmaOperand(acc, MmaOperand::A, 64, mma); };
  const TileLayout bf16 = A({16, 16}), tf32 = A({32, 8}), s8 = A({8, 32});
  const auto count = [](const TileLayout &from, const TileLayout &to, unsigned bits) {
    return planShuffle(from, to, bits)->shuffles(bits);
  };
  EXPECT_EQ(tierOf(acc, bf16), Tier::identity);
  EXPECT_EQ(count(acc, tf32, 32), 64u);
  EXPECT_EQ(count(acc, s8, 32), 64u);
  EXPECT_EQ(count(tf32, s8, 32), 48u); // two units change places between registers and lanes that stay
  EXPECT_EQ(count(acc, s8, 16), 32u);
  EXPECT_EQ(count(acc, tf32, 64), 128u);
}

} // namespace

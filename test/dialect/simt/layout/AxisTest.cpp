// Reductions and scans along a dimension, bit by bit as axisBits lists them, with an operation that is not commutative
// and poison in the padding.

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "test/dialect/simt/layout/Random.h"

#include <gtest/gtest.h>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

using Position = llvm::SmallVector<int64_t>;
constexpr unsigned numWarps = 4;

/// x ↦ factor · x + offset modulo a prime. `then` is associative and not commutative.
struct Affine {
  int64_t factor = 1, offset = 0;
  static constexpr int64_t prime = 1000003;

  Affine then(const Affine &next) const {
    return {factor * next.factor % prime, (offset * next.factor + next.offset) % prime};
  }
  bool operator==(const Affine &) const = default;
};
const Affine poison = {0, 12345}; // forgets whatever comes before

Affine valueAt(const Position &position) {
  int64_t hash = 17;
  for (const int64_t at : position)
    hash = (hash * 131 + at) % Affine::prime;
  return {hash % 1000 + 2, hash % 777};
}

/// A value for each stored index of each thread.
class File {
public:
  explicit File(const TileLayout &layout) : layout(layout), values(size_t{layout.numWarps() * numLanes}) {
    for (auto &thread : values)
      thread.resize(static_cast<size_t>(layout.numStored()));
  }
  Affine &at(int64_t stored, unsigned lane, unsigned warp) {
    return values[warp * numLanes + lane][static_cast<size_t>(stored)];
  }
  /// The value at the place that has the other value of a bit.
  Affine &across(AxisBit bit, int64_t stored, unsigned lane, unsigned warp) {
    const unsigned mask = 1u << bit.index;
    switch (bit.part) {
    case Hw::reg:
      return at(stored ^ mask, lane, warp);
    case Hw::lane:
      return at(stored, lane ^ mask, warp);
    default:
      return at(stored, lane, warp ^ mask);
    }
  }
  template <class Visit> void forEach(Visit visit) {
    for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
      for (unsigned lane = 0; lane < numLanes; ++lane)
        for (int64_t stored = 0; stored < layout.numStored(); ++stored)
          visit(stored, lane, warp, at(stored, lane, warp));
  }

private:
  const TileLayout &layout;
  std::vector<std::vector<Affine>> values;
};

/// The values up to each position along `dim`, itself included, and everything along it.
struct Scanned {
  File prefix, total;
};

/// Bits from low to high, wherever they live: the half above gets all of the half below in front; then the repeats.
Scanned scan(const TileLayout &layout, unsigned dim) {
  Scanned result{File(layout), File(layout)};
  result.prefix.forEach([&](int64_t stored, unsigned lane, unsigned warp, Affine &value) {
    const Position position = layout.positionOf(stored, {lane, warp});
    const Extent &extent = layout.shape()[dim];
    value = layout.shape()[dim].isPadded() && position[dim] >= extent.size ? Affine() : valueAt(position);
    for (unsigned other = 0; other < layout.rank(); ++other)
      if (other != dim && position[other] >= layout.shape()[other].size)
        value = poison;
    result.total.at(stored, lane, warp) = value;
  });
  for (const AxisBit &bit : layout.axisBits(dim)) {
    File before = result.total;
    result.prefix.forEach([&](int64_t stored, unsigned lane, unsigned warp, Affine &prefix) {
      const Affine own = before.at(stored, lane, warp), other = before.across(bit, stored, lane, warp);
      const bool isHigh = layout.positionOf(stored, {lane, warp})[dim] >> bit.bit & 1;
      if (isHigh)
        prefix = other.then(prefix);
      result.total.at(stored, lane, warp) = isHigh ? other.then(own) : own.then(other);
    });
  }
  File ofCore = result.total;
  result.prefix.forEach([&](int64_t stored, unsigned lane, unsigned warp, Affine &prefix) {
    const Extent &extent = layout.shape()[dim];
    const Position position = layout.positionOf(stored);
    const int64_t own = position[dim] / extent.core();
    Affine below, all;
    for (int64_t repeat = 0; repeat < extent.repeats; ++repeat) {
      Position there = position;
      there[dim] += (repeat - own) * extent.core();
      const Affine part = ofCore.at(*layout.storedAt(there), lane, warp);
      all = all.then(part);
      if (repeat < own)
        below = below.then(part);
    }
    prefix = below.then(prefix);
    result.total.at(stored, lane, warp) = all;
  });
  return result;
}

/// Layouts of several kinds for a shape.
std::vector<TileLayout> layoutsOf(llvm::ArrayRef<int64_t> sizes, Random &random) {
  std::vector<TileLayout> layouts = {random.layout(sizes, numWarps)};
  if (sizes.size() != 2)
    return layouts;
  layouts.push_back(blocked(sizes, {1, 0}, {1, 4}, numWarps));
  layouts.push_back(blocked(sizes, {0, 1}, {2, 1}, numWarps));
  if (const auto split = warpSplit(sizes[0], sizes[1], 16, numWarps, false))
    layouts.push_back(mmaAcc(sizes[0], sizes[1], *split, numWarps));
  return layouts;
}

template <class Body> void forTiles(Body body) {
  Random random(1);
  for (const int64_t size : {768, 80, 50, 1, 3, 1000, 96, 33, 12, 24, 200})
    for (const llvm::SmallVector<int64_t> &sizes :
         {llvm::SmallVector<int64_t>{size}, {size, 16}, {16, size}, {3, size, 5}})
      for (const TileLayout &layout : layoutsOf(sizes, random))
        for (unsigned dim = 0; dim < layout.rank(); ++dim) {
          SCOPED_TRACE(layout.text() + ", along " + std::to_string(dim));
          body(layout, dim);
          if (testing::Test::HasFailure())
            return;
        }
}

bool isInside(const TileLayout &layout, const Position &position) {
  return llvm::all_of_zip(position, layout.shape().sizes(), [](int64_t at, int64_t size) { return at < size; });
}

// A scan gives every element what stands at and before it, and the total of all, in order.
TEST(Axis, ScansFollowTheOrderOfPositions) {
  forTiles([](const TileLayout &layout, unsigned dim) {
    Scanned scanned = scan(layout, dim);
    scanned.prefix.forEach([&](int64_t stored, unsigned lane, unsigned warp, const Affine &prefix) {
      Position position = layout.positionOf(stored, {lane, warp});
      if ((lane + stored) % 7 != 0 || !isInside(layout, position)) // a seventh of the elements
        return;
      const int64_t end = position[dim];
      Affine want;
      for (position[dim] = 0; position[dim] <= end; ++position[dim])
        want = want.then(valueAt(position));
      ASSERT_EQ(prefix, want);
    });
  });
}

// A reduction is what the last element's scan is, in every thread that the slice says holds it.
TEST(Axis, ReductionsLeaveTheSlice) {
  forTiles([](const TileLayout &layout, unsigned dim) {
    Scanned scanned = scan(layout, dim);
    const TileLayout slice = layout.slice(dim);
    const auto without = [&](Position position) {
      position.erase(position.begin() + dim);
      return position;
    };
    File reduced(slice);
    scanned.total.forEach([&](int64_t stored, unsigned lane, unsigned warp, const Affine &total) {
      reduced.at(*slice.storedAt(without(layout.positionOf(stored))), lane, warp) = total;
    });
    reduced.forEach([&](int64_t stored, unsigned lane, unsigned warp, const Affine &total) {
      Position position = slice.positionOf(stored, {lane, warp});
      if (stored % 3 != 0 || !isInside(slice, position)) // a third
        return;
      position.insert(position.begin() + dim, 0);
      Affine want;
      for (; position[dim] < layout.shape()[dim].size; ++position[dim])
        want = want.then(valueAt(position));
      ASSERT_EQ(total, want);
    });
  });
}

// Shuffles that a sum takes: a word kept for each register of the slice, times the lane bits along the dimension.
TEST(Axis, KnownCosts) {
  const auto shuffles = [](const TileLayout &layout, unsigned dim) {
    const auto lanes = llvm::count_if(layout.axisBits(dim), [](const AxisBit &bit) { return bit.part == Hw::lane; });
    return layout.slice(dim).numStored() * lanes;
  };
  const auto rows = [](int64_t m, int64_t n) {
    const int64_t sizes[] = {m, n}, strides[] = {n, 1};
    return coalesced({.sizes = sizes, .strides = strides, .divisibility = 16, .bits = 16}, numWarps);
  };
  EXPECT_EQ(shuffles(rows(8, 768), 1), 10);
  EXPECT_EQ(shuffles(rows(64, 80), 1), 1);
  EXPECT_EQ(shuffles(rows(64, 80), 0), 160);
  EXPECT_EQ(shuffles(rows(64, 200), 0), 416);
  EXPECT_EQ(shuffles(mmaAcc(64, 80, {4, 1}, numWarps), 1), 4); // two rows of a lane, four lanes
}

// --- Which means a conversion takes ----------------------------------------------------------------------------------

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

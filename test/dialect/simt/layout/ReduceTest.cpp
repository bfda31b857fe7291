// Plans of reductions, carried out on random layouts: sums of numbers that positions determine, with poison in the
// padding.

#include "dialect/simt/layout/Reduce.h"
#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Shuffle.h"
#include "test/dialect/simt/layout/Random.h"

#include <gtest/gtest.h>

#include <map>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

using Position = llvm::SmallVector<int64_t>;
constexpr unsigned numWarps = 4;
constexpr int64_t poison = int64_t{1} << 50;

/// Values of all threads: [warp][lane][stored].
using File = std::vector<std::vector<std::vector<int64_t>>>;

File fileOf(const TileLayout &layout) {
  return File(numWarps, std::vector(numLanes, std::vector<int64_t>(static_cast<size_t>(layout.numStored()))));
}

bool isInside(const TileShape &tile, const Position &position) {
  return llvm::all_of_zip(position, tile.sizes(), [](int64_t at, int64_t size) { return at < size; });
}

int64_t valueAt(const Position &position) {
  int64_t hash = 7;
  for (const int64_t at : position)
    hash = (hash * 1009 + at * 31) % 65521;
  return hash;
}

/// Step 1: each thread's registers.
File fold(const ReducePlan &plan, const TileLayout &layout, unsigned dim) {
  File file(numWarps, std::vector(numLanes, std::vector<int64_t>(plan.folds.size())));
  for (unsigned warp = 0; warp < numWarps; ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (size_t i = 0; i < plan.folds.size(); ++i)
        for (const int64_t stored : plan.folds[i]) {
          const Position position = layout.positionOf(stored, {lane, warp});
          const bool isPast = position[dim] >= layout.shape()[dim].size;
          file[warp][lane][i] += isPast ? 0 : isInside(layout.shape(), position) ? valueAt(position) : poison;
        }
  return file;
}

/// Step 2: between lanes.
File combineLanes(const ReducePlan &plan, File file) {
  for (const LaneStep &step : plan.lanes) {
    const File before = file;
    for (unsigned warp = 0; warp < numWarps; ++warp)
      for (unsigned lane = 0; lane < numLanes; ++lane) {
        const std::vector<int64_t> &own = before[warp][lane], &other = before[warp][lane ^ 1u << step.bit];
        std::vector<int64_t> &values = file[warp][lane];
        values.clear();
        for (size_t i = 0; i < own.size(); ++i)
          if (!step.half || (i >> *step.half & 1) == (lane >> step.bit & 1))
            values.push_back(own[i] + other[i]);
      }
  }
  return file;
}

/// Step 3: the conversion, by positions, and the sum of the last dimension.
File gather(const ReducePlan &plan, const File &file) {
  std::map<std::vector<int64_t>, int64_t> memory;
  for (unsigned warp = 0; warp < numWarps; ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < plan.partial.numStored(); ++stored) {
        const Position at = plan.partial.positionOf(stored, {lane, warp});
        const int64_t value = file[warp][lane][static_cast<size_t>(stored)];
        const auto [place, isNew] = memory.emplace(std::vector<int64_t>(at.begin(), at.end()), value);
        EXPECT_EQ(place->second, value) << "copies differ";
      }
  File result = fileOf(plan.result);
  for (unsigned warp = 0; warp < numWarps; ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < plan.gathered.numStored(); ++stored) {
        const Position at = plan.gathered.positionOf(stored, {lane, warp});
        Position own = plan.gathered.positionOf(stored);
        own.pop_back();
        result[warp][lane][static_cast<size_t>(*plan.result.storedAt(own))] +=
            memory.at(std::vector<int64_t>(at.begin(), at.end()));
      }
  return result;
}

void expectReduces(const TileLayout &layout, unsigned dim, bool mayExchange) {
  SCOPED_TRACE(layout.text() + ", along " + std::to_string(dim));
  const ReducePlan plan = planReduce(layout, dim, mayExchange);
  const File sums = gather(plan, combineLanes(plan, fold(plan, layout, dim)));
  for (unsigned warp = 0; warp < numWarps; ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < plan.result.numStored(); ++stored) {
        Position position = plan.result.positionOf(stored, {lane, warp});
        if (!isInside(plan.result.shape(), position))
          continue;
        position.insert(position.begin() + dim, 0);
        int64_t want = 0;
        for (; position[dim] < layout.shape()[dim].size; ++position[dim])
          want += valueAt(position);
        ASSERT_EQ(sums[warp][lane][static_cast<size_t>(stored)], want);
      }
  if (!mayExchange) {
    EXPECT_EQ(plan.result, layout.slice(dim));
  }
}

// Every plan leaves the sums where its result says, with butterflies and with exchanges.
TEST(Reduce, PlansReduce) {
  Random random(1);
  for (unsigned round = 0; round < 300 && !HasFailure(); ++round) {
    const auto sizes = random.sizes();
    expectReduces(random.layout(sizes, numWarps), random.below(static_cast<unsigned>(sizes.size())), round % 2);
  }
}

// Exchanges, with the way back to the slice, never take more shuffles than butterflies; and halves cannot be exchanged
// where a lane has one value.
TEST(Reduce, ExchangesAreNeverWorse) {
  Random random(2);
  for (unsigned round = 0; round < 300; ++round) {
    const auto sizes = random.sizes();
    const TileLayout layout = random.layout(sizes, numWarps);
    const unsigned dim = random.below(static_cast<unsigned>(sizes.size()));
    const ReducePlan plain = planReduce(layout, dim, false), plan = planReduce(layout, dim, true);
    const unsigned back = planShuffle(plan.result, plain.result, 32)->shuffles(32);
    EXPECT_LE(plan.shuffles() + back, plain.shuffles()) << layout.text() << ", along " << dim;
  }
}

// Plans for a 64 × 80 tile whose rows lie along two lanes, sixteen to a warp; shuffles for each of five repeats.
TEST(Reduce, KnownCosts) {
  const TileLayout rows = blocked({64, 80}, {1, 0}, {1, 8}, numWarps);
  EXPECT_EQ(planReduce(rows, 1, true).shuffles(), 1u);
  EXPECT_EQ(planReduce(rows, 0, false).shuffles(), 8u * 4);
  EXPECT_EQ(planReduce(rows, 0, true).shuffles(), 4u + 2 + 1 + 1);
  const TileLayout tall = blocked({256, 16}, {1, 0}, {1, 8}, numWarps); // one exchange costs what a butterfly does
  EXPECT_EQ(planReduce(tall, 1, true).result, tall.slice(1));
  EXPECT_EQ(planReduce(rows, 0, false).partial.text(),
            "80x4, rep 5x1, reg [d0:1 d0:2 d0:4], lane [d0:8 * * * *], warp [d1:1 d1:2]");
  EXPECT_EQ(planReduce(rows, 0, false).gathered.text(),
            "80x4, rep 5x1, reg [d0:1 d0:2 d0:4 d1:1 d1:2], lane [d0:8 * * * *], warp [* *]");
}

} // namespace

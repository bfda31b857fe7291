// Layouts as maps from places to positions, and the layouts made of them, on random layouts of odd and even extents.

#include "dialect/simt/layout/TileLayout.h"
#include "test/dialect/simt/layout/Random.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <gtest/gtest.h>

#include <map>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

using Position = llvm::SmallVector<int64_t>;

constexpr unsigned numRounds = 150, numWarps = 4;

/// Calls visit(stored, thread) for every value of every thread.
template <class Visit> void forEachPlace(const TileLayout &layout, Visit visit) {
  for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < layout.numStored(); ++stored)
        visit(stored, Thread{lane, warp});
}

Position without(Position position, unsigned dim) {
  position.erase(position.begin() + dim);
  return position;
}

template <class Body> void forRandomLayouts(uint32_t seed, Body body) {
  Random random(seed);
  for (unsigned round = 0; round < numRounds; ++round) {
    const TileLayout layout = random.layout(random.sizes(), numWarps);
    SCOPED_TRACE(layout.text());
    body(random, layout);
    if (testing::Test::HasFailure())
      return;
  }
}

// The worked example of dialect/simt/layout/README.md.
TEST(TileLayout, WorkedExample) {
  const auto layout = TileLayout::parse("128x96, rep 1x3, reg [d1:1 d0:8 d1:8 d1:16 d0:64], "
                                        "lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]",
                                        [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
  EXPECT_EQ(layout->positionOf(70, {.lane = 13, .warp = 2}), (Position{43, 74}));
}

// Every position of the padded tile has a place, and as many places as bits that stand for nothing allow.
TEST(TileLayout, EveryPositionIsHeldEquallyOften) {
  forRandomLayouts(1, [](Random &, const TileLayout &layout) {
    std::map<std::vector<int64_t>, unsigned> times;
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const Position position = layout.positionOf(stored, thread);
      ++times[std::vector<int64_t>(position.begin(), position.end())];
    });
    int64_t padded = 1;
    for (const Extent &extent : layout.shape().dims())
      padded *= extent.padded;
    EXPECT_EQ(static_cast<int64_t>(times.size()), padded);
    const unsigned copies =
        1u << (llvm::popcount(layout.replicated(Hw::lane)) + llvm::popcount(layout.replicated(Hw::warp)));
    for (const auto &[position, count] : times)
      ASSERT_EQ(count, copies);
  });
}

// A thread's position is what its register gives, plus what its fields give.
TEST(TileLayout, FieldsAddUpToPositions) {
  forRandomLayouts(2, [](Random &, const TileLayout &layout) {
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const Position position = layout.positionOf(stored, thread), first = layout.positionOf(stored);
      for (unsigned dim = 0; dim < layout.rank(); ++dim) {
        int64_t sum = first[dim];
        for (const auto &[part, number] : {std::pair(Hw::lane, thread.lane), {Hw::warp, thread.warp}})
          for (const BitField &field : layout.fieldsOf(part, dim))
            sum += int64_t{number >> field.from & ((1u << field.width) - 1)} << field.to;
        ASSERT_EQ(sum, position[dim]);
      }
    });
  });
}

// storedAt finds thread 0's values again, and nothing that other threads hold.
TEST(TileLayout, StoredAtInvertsThreadZero) {
  forRandomLayouts(3, [](Random &, const TileLayout &layout) {
    std::map<std::vector<int64_t>, int64_t> own;
    for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
      const Position position = layout.positionOf(stored);
      ASSERT_EQ(layout.storedAt(position), stored);
      own[std::vector<int64_t>(position.begin(), position.end())] = stored;
    }
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const Position position = layout.positionOf(stored, thread);
      ASSERT_EQ(layout.storedAt(position).has_value(),
                own.count(std::vector<int64_t>(position.begin(), position.end())) == 1);
    });
  });
}

// Ranges are exact: the lowest and the highest position of any thread.
TEST(TileLayout, RangesAreThoseOfAllThreads) {
  forRandomLayouts(4, [](Random &, const TileLayout &layout) {
    for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
      bool isAnyInside = false;
      for (unsigned dim = 0; dim < layout.rank(); ++dim) {
        int64_t low = INT64_MAX, high = 0;
        for (unsigned thread = 0; thread < numLanes * numWarps; ++thread) {
          const int64_t at = layout.positionOf(stored, {thread % numLanes, thread / numLanes})[dim];
          low = std::min(low, at);
          high = std::max(high, at);
        }
        ASSERT_EQ(layout.rangeOf(stored, dim), std::pair(low, high));
        ASSERT_EQ(layout.isRagged(stored, dim), high >= layout.shape()[dim].size);
      }
      for (unsigned thread = 0; thread < numLanes * numWarps; ++thread)
        isAnyInside |= llvm::all_of_zip(layout.positionOf(stored, {thread % numLanes, thread / numLanes}),
                                        layout.shape().sizes(), [](int64_t at, int64_t size) { return at < size; });
      ASSERT_EQ(layout.isDead(stored), !isAnyInside);
    }
  });
}

// A slice holds, where the whole does, the position without the dimension; registers along it become one.
TEST(TileLayout, SlicesDropADimension) {
  forRandomLayouts(5, [](Random &random, const TileLayout &layout) {
    const unsigned dim = random.below(layout.rank());
    const TileLayout slice = layout.slice(dim);
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const std::optional<int64_t> kept = slice.storedAt(without(layout.positionOf(stored), dim));
      ASSERT_TRUE(kept);
      ASSERT_EQ(slice.positionOf(*kept, thread), without(layout.positionOf(stored, thread), dim));
    });
  });
}

// Half of a tile holds, where the whole does, the positions with one value of a bit, without that bit. There is none
// for a bit that lanes or warps have.
TEST(TileLayout, HalvesKeepTheirPlaces) {
  int64_t halves = 0;
  forRandomLayouts(8, [&](Random &random, const TileLayout &layout) {
    const unsigned dim = random.below(layout.rank()), bit = random.below(std::max(1u, layout.shape()[dim].coreBits));
    const std::optional<TileLayout> half = layout.half(dim, bit);
    const bool isOfRegister = bit < layout.shape()[dim].coreBits &&
                              llvm::is_contained(layout.bases(Hw::reg), layout.shape().vectorOf({dim, bit}));
    ASSERT_TRUE(isOfRegister || !half);
    ASSERT_TRUE(half || !isOfRegister || layout.shape()[dim].isPadded() || layout.shape()[dim].size % (2 << bit) != 0);
    if (!half)
      return;
    ++halves;
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const auto withoutBit = [&](Position position) {
        position[dim] = (position[dim] >> (bit + 1) << bit) | (position[dim] & ((int64_t{1} << bit) - 1));
        return position;
      };
      const std::optional<int64_t> kept = half->storedAt(withoutBit(layout.positionOf(stored)));
      ASSERT_TRUE(kept);
      ASSERT_EQ(half->positionOf(*kept, thread), withoutBit(layout.positionOf(stored, thread)));
    });
  });
  EXPECT_GT(halves, 0);
}

// A dimension of extent 1 that is put in is at position 0, and slicing takes it out again.
TEST(TileLayout, ExpandingAddsADimensionOfOne) {
  forRandomLayouts(6, [](Random &random, const TileLayout &layout) {
    const unsigned dim = random.below(layout.rank() + 1);
    const TileLayout expanded = layout.expand(dim);
    EXPECT_EQ(expanded.slice(dim), layout);
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const Position position = expanded.positionOf(stored, thread);
      ASSERT_EQ(position[dim], 0);
      ASSERT_EQ(without(position, dim), layout.positionOf(stored, thread));
    });
  });
}

// Transposing permutes positions, and the inverse order undoes it.
TEST(TileLayout, TransposesPermutePositions) {
  forRandomLayouts(7, [](Random &random, const TileLayout &layout) {
    auto order = llvm::to_vector(llvm::seq(layout.rank()));
    random.shuffle(order);
    const auto permuted = [&](const Position &position) {
      return Position(llvm::map_range(order, [&](unsigned source) { return position[source]; }));
    };
    const TileLayout transposed = layout.transpose(order);
    llvm::SmallVector<unsigned> inverse(order.size());
    for (unsigned i = 0; i < order.size(); ++i)
      inverse[order[i]] = i;
    EXPECT_EQ(transposed.transpose(inverse), layout);
    forEachPlace(layout, [&](int64_t stored, Thread thread) {
      const std::optional<int64_t> there = transposed.storedAt(permuted(layout.positionOf(stored)));
      ASSERT_TRUE(there);
      ASSERT_EQ(transposed.positionOf(*there, thread), permuted(layout.positionOf(stored, thread)));
    });
  });
}

// axisBits lists the units of a dimension once each, lowest first, with the bits of the place that stand for them.
TEST(TileLayout, AxisBitsAreTheUnitsInOrder) {
  forRandomLayouts(8, [](Random &, const TileLayout &layout) {
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      const auto bits = layout.axisBits(dim);
      ASSERT_EQ(bits.size(), layout.shape()[dim].coreBits);
      for (unsigned i = 0; i < bits.size(); ++i) {
        EXPECT_EQ(bits[i].bit, i);
        EXPECT_EQ(layout.bases(bits[i].part)[bits[i].index], layout.shape().vectorOf({dim, i}));
      }
    }
  });
}

/// The row-major index of a position.
int64_t flat(llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> sizes) {
  int64_t index = 0;
  for (const auto [at, size] : llvm::zip_equal(position, sizes))
    index = index * size + at;
  return index;
}

/// Whether `to` with the same bases has, everywhere, the element that `from` has, and `from` has no padding.
bool keepsElements(const TileLayout &from, const TileLayout &to) {
  bool keeps = from.numStored() == to.numStored();
  if (keeps)
    forEachPlace(from, [&](int64_t stored, Thread thread) {
      const Position a = from.positionOf(stored, thread), b = to.positionOf(stored, thread);
      const auto sizesOfA = from.shape().sizes(), sizesOfB = to.shape().sizes();
      const auto inside = [](const Position &at, llvm::ArrayRef<int64_t> sizes) {
        return llvm::all_of_zip(at, sizes, [](int64_t p, int64_t size) { return p < size; });
      };
      keeps &= inside(a, sizesOfA) == inside(b, sizesOfB);
      if (inside(a, sizesOfA) && inside(b, sizesOfB))
        keeps &= flat(a, sizesOfA) == flat(b, sizesOfB);
    });
  return keeps;
}

struct Reshaping {
  llvm::SmallVector<int64_t> from, to;
};

// The free reshapes keep each element at its place.
TEST(TileLayout, FreeReshapesKeepElementsInPlace) {
  Random random(9);
  for (const Reshaping &reshaping : {Reshaping{{768}, {3, 256}},
                                     {{768}, {12, 64}},
                                     {{768}, {48, 16}},
                                     {{96, 8}, {768}},
                                     {{80, 64}, {5120}},
                                     {{32, 96}, {32, 6, 16}},
                                     {{4, 1, 12}, {4, 12}},
                                     {{12, 20}, {1, 12, 20}},
                                     {{64}, {4, 4, 4}},
                                     {{8, 50}, {2, 4, 50}}}) {
    const TileLayout layout = random.layout(reshaping.from, numWarps);
    const std::optional<TileLayout> reshaped = layout.reshape(reshaping.to);
    ASSERT_TRUE(reshaped) << layout.text();
    EXPECT_TRUE(keepsElements(layout, *reshaped)) << layout.text() << " as " << reshaped->text();
  }
}

// Others are refused, and rightly: the same bases would hold other elements, or there are not as many.
TEST(TileLayout, OtherReshapesAreRefused) {
  Random random(10);
  for (const Reshaping &reshaping : {Reshaping{{768}, {256, 3}},
                                     {{8, 96}, {768}},
                                     {{64, 80}, {5120}},
                                     {{96, 16}, {16, 96}},
                                     {{50, 2}, {100}},
                                     {{100}, {10, 10}}}) {
    const TileLayout layout = random.layout(reshaping.from, numWarps);
    EXPECT_EQ(layout.reshape(reshaping.to), std::nullopt) << layout.text();
    if (TileShape(reshaping.to).coreBits() == layout.shape().coreBits()) {
      const TileLayout same = TileLayout::get(reshaping.to, {Vecs(layout.bases(Hw::reg)), Vecs(layout.bases(Hw::lane)),
                                                             Vecs(layout.bases(Hw::warp)), Vecs()});
      EXPECT_FALSE(keepsElements(layout, same)) << layout.text();
    }
  }
  EXPECT_EQ(random.layout({64}, numWarps).reshape({32}), std::nullopt);
}

// Equal layouts have equal hashes, and one that differs in a basis alone is another.
TEST(TileLayout, EqualityIsOfShapesAndBases) {
  Random random(11);
  const TileLayout layout = random.layout({32, 48}, numWarps);
  const TileLayout same = layout.transpose({1, 0}).transpose({1, 0});
  EXPECT_EQ(layout, same);
  EXPECT_EQ(hash_value(layout), hash_value(same));
  EXPECT_FALSE(layout == random.layout({32, 48}, numWarps));
  EXPECT_FALSE(layout == random.layout({32, 48}, 2 * numWarps));
}

} // namespace

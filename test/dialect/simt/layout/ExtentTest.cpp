// The padding rule, for every extent up to 4096.

#include "dialect/simt/layout/Extent.h"

#include <gtest/gtest.h>

using namespace kiln::simt;

namespace {

constexpr int64_t most = 4096;

// Repeats are odd and at most 15, and repeats times core is the padded extent.
TEST(Extent, RepeatsAreOddAndFew) {
  for (int64_t size = 1; size <= most; ++size) {
    const Extent extent = Extent::of(size);
    ASSERT_EQ(extent.repeats * extent.core(), extent.padded) << size;
    ASSERT_EQ(extent.repeats % 2, 1) << size;
    ASSERT_LE(extent.repeats, 15) << size;
    ASSERT_GE(extent.padded, size) << size;
  }
}

// From 25 on the core is large enough for a tensor-core instruction.
TEST(Extent, LargeExtentsHaveCoresOf16) {
  for (int64_t size = 25; size <= most; ++size)
    ASSERT_GE(Extent::of(size).core(), 16) << size;
}

// Padding what was padded changes nothing, so that tiles of padded extents are tiles.
TEST(Extent, PaddingIsIdempotent) {
  for (int64_t size = 1; size <= most; ++size) {
    const int64_t padded = Extent::of(size).padded;
    ASSERT_EQ(Extent::of(padded).padded, padded) << size;
  }
}

// The rule rounds up to a multiple of 16, or of an eighth of the highest power of two: what it adds is below that.
TEST(Extent, WasteIsBounded) {
  for (int64_t size = 1; size <= most; ++size) {
    const int64_t waste = Extent::of(size).padded - size;
    if (size > 128) {
      ASSERT_LT(waste * 8, size) << size;
    } else if (size > 16) {
      ASSERT_LT(waste, 16) << size;
    } else {
      ASSERT_LT(waste, size) << size;
    }
  }
}

// Tile sizes that people write are taken as they are, and a few others are known.
TEST(Extent, KnownExtents) {
  for (const int64_t exact : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 384, 768, 1024})
    EXPECT_EQ(Extent::of(exact).padded, exact);
  for (const auto &[size, padded] :
       {std::pair(5, 8), {7, 8}, {9, 16}, {17, 32}, {33, 48}, {50, 64}, {65, 80}, {100, 112}, {200, 208}, {1000, 1024}})
    EXPECT_EQ(Extent::of(size).padded, padded) << size;
  EXPECT_EQ(Extent::of(768), (Extent{.size = 768, .padded = 768, .coreBits = 8, .repeats = 3}));
}

// Units and vectors are two names of one thing, and positions are read off vectors.
TEST(Extent, UnitsAreVectors) {
  const TileShape tile({12, 5, 1, 64}); // cores 4, 8, 1, 64
  EXPECT_EQ(tile.coreBits(), 11u);
  EXPECT_EQ(tile.repeats(), 3);
  EXPECT_EQ(tile.vectorOf({3, 5}), Vec{1} << 5);
  EXPECT_EQ(tile.vectorOf({1, 0}), Vec{1} << 6);
  for (unsigned bit = 0; bit < tile.coreBits(); ++bit)
    EXPECT_EQ(tile.vectorOf(tile.unitOf(Vec{1} << bit)), Vec{1} << bit);
  const Vec core = tile.vectorAt(0, 3) | tile.vectorAt(1, 6) | tile.vectorAt(3, 41);
  EXPECT_EQ(tile.positionIn(0, core), 3);
  EXPECT_EQ(tile.positionIn(1, core), 6);
  EXPECT_EQ(tile.positionIn(2, core), 0);
  EXPECT_EQ(tile.positionIn(3, core), 41);
}

} // namespace

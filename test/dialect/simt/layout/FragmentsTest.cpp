// Fragments against the formulas of the PTX ISA ("Matrix fragments for mma.m16n8k…"), for every lane and register, and
// the tiles that are made of them.

#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/Blocked.h"

#include <gtest/gtest.h>

using namespace kiln::simt;

namespace {

using Position = llvm::SmallVector<int64_t>;

const MmaShape everyMma[] = {{16, 16}, {16, 8}, {32, 8}, {32, 4}, {8, 32}, {8, 16}};

/// Where element i of a fragment lies, with group g = lane / 4 and t = lane % 4, as the ISA has it for each type.
Position elementOfA(MmaShape mma, int i, int g, int t) {
  switch (mma.bits) {
  case 16: // a0, a1, a4, a5: row g; the upper four: k + 8
    return {g + (i / 2 % 2 ? 8 : 0), t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  case 32: // a0, a2: row g; a2, a3: k + 4
    return {g + (i % 2 ? 8 : 0), t + (i < 2 ? 0 : 4)};
  default: // a0 … a3, a8 … a11: row g; from a8 on: k + 16
    return {g + (i / 4 % 2 ? 8 : 0), t * 4 + (i & 3) + (i < 8 ? 0 : 16)};
  }
}
Position elementOfB(MmaShape mma, int i, int g, int t) {
  switch (mma.bits) {
  case 16:
    return {t * 2 + (i & 1) + (i < 2 ? 0 : 8), g};
  case 32:
    return {t + 4 * i, g};
  default:
    return {t * 4 + (i & 3) + (i < 4 ? 0 : 16), g};
  }
}
Position elementOfD(int i, int g, int t) { return {i < 2 ? g : g + 8, t * 2 + (i & 1)}; }

template <class Want> void expectFragment(const TileLayout &layout, Want want) {
  for (int64_t i = 0; i < layout.numStored(); ++i)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      EXPECT_EQ(layout.positionOf(i, {lane}),
                want(static_cast<int>(i), static_cast<int>(lane) / 4, static_cast<int>(lane) % 4))
          << layout.text() << ", element " << i << " of lane " << lane;
}

// One instruction's operands are the ISA's, in every type and length.
TEST(Fragments, AreThoseOfTheIsa) {
  const TileLayout acc = mmaAcc(16, 8, {}, 1);
  expectFragment(acc, elementOfD);
  for (const MmaShape mma : everyMma) {
    expectFragment(mmaOperand(acc, MmaOperand::A, mma.k, mma),
                   [&](int i, int g, int t) { return elementOfA(mma, i, g, t); });
    expectFragment(mmaOperand(acc, MmaOperand::B, mma.k, mma),
                   [&](int i, int g, int t) { return elementOfB(mma, i, g, t); });
  }
}

// The longest instruction is taken that the core of K allows.
TEST(Fragments, InstructionsFitTheSum) {
  EXPECT_EQ(mmaShapeFor(16, 64), (MmaShape{16, 16}));
  EXPECT_EQ(mmaShapeFor(16, 24), (MmaShape{16, 8}));
  EXPECT_EQ(mmaShapeFor(16, 12), std::nullopt);
  EXPECT_EQ(mmaShapeFor(32, 12), (MmaShape{32, 4}));
  EXPECT_EQ(mmaShapeFor(8, 48), (MmaShape{8, 16}));
  EXPECT_EQ(mmaShapeFor(8, 96), (MmaShape{8, 32}));
}

// Known splits over warps: the fewest reads; with a row in a warp, all warps along M.
TEST(Fragments, WarpSplits) {
  struct Case {
    int64_t M, N;
    unsigned warps;
    std::optional<WarpSplit> split, rows;
  };
  for (const Case &example : {Case{128, 128, 4, WarpSplit{2, 2}, WarpSplit{4, 1}},
                              {128, 128, 8, WarpSplit{4, 2}, WarpSplit{8, 1}},
                              {128, 96, 4, WarpSplit{2, 2}, WarpSplit{4, 1}},
                              {64, 80, 4, WarpSplit{2, 2}, WarpSplit{4, 1}},
                              {64, 128, 4, WarpSplit{2, 2}, WarpSplit{4, 1}},
                              {48, 192, 4, WarpSplit{1, 4}, std::nullopt},
                              {16, 128, 4, WarpSplit{1, 4}, std::nullopt},
                              {80, 64, 4, WarpSplit{1, 4}, std::nullopt},
                              {80, 80, 4, WarpSplit{1, 2}, std::nullopt},
                              {96, 80, 4, WarpSplit{2, 2}, std::nullopt},
                              {256, 64, 8, WarpSplit{8, 1}, WarpSplit{8, 1}},
                              {12, 64, 4, std::nullopt, std::nullopt}}) {
    EXPECT_EQ(warpSplit(example.M, example.N, 64, example.warps, false), example.split)
        << example.M << 'x' << example.N;
    EXPECT_EQ(warpSplit(example.M, example.N, 64, example.warps, true), example.rows) << example.M << 'x' << example.N;
  }
}

// Of splits that read as many elements, the one with fewer rows a warp, or with fewer columns; none that reads more.
TEST(Fragments, WarpSplitsThatSpareB) {
  EXPECT_EQ(warpSplit(128, 64, 64, 4, false), (WarpSplit{4, 1}));
  EXPECT_EQ(warpSplit(128, 64, 64, 4, false, {}, /*sparesB=*/true), (WarpSplit{2, 2}));
  EXPECT_EQ(warpSplit(128, 128, 64, 8, false, {}, /*sparesB=*/true), (WarpSplit{2, 4}));
  EXPECT_EQ(warpSplit(128, 128, 64, 4, false, {}, /*sparesB=*/true), (WarpSplit{2, 2}));
  EXPECT_EQ(warpSplit(256, 64, 64, 4, false, {}, /*sparesB=*/true), (WarpSplit{4, 1}));
}

// The layouts that the documentation shows.
TEST(Fragments, KnownTiles) {
  const TileLayout acc = mmaAcc(128, 96, {4, 1}, 4);
  EXPECT_EQ(acc.text(),
            "128x96, rep 1x3, reg [d1:1 d0:8 d1:8 d1:16 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]");
  EXPECT_EQ(mmaOperand(acc, MmaOperand::B, 64, {16, 16}).text(),
            "64x96, rep 1x3, reg [d0:1 d0:8 d0:16 d0:32 d1:8 d1:16], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]");
  EXPECT_EQ(mmaOperand(acc, MmaOperand::A, 32, {16, 16}).text(),
            "128x32, reg [d1:1 d0:8 d1:8 d1:16 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]");
  EXPECT_EQ(wgmmaAcc(64, 80, 4).text(),
            "64x80, rep 1x5, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]");
  EXPECT_EQ(mmaAcc(80, 80, {1, 2}, 4).bases(Hw::warp).back(), 0u); // the other two warps do the same
}

// With strides a lane has neighbouring rows and columns, in registers of several instructions; warps share what is
// above.
TEST(Fragments, NeighboursInALane) {
  const TileLayout acc = mmaAcc(128, 128, {2, 2}, 4, {}, {.m = 2, .n = 4});
  EXPECT_EQ(acc.text(), "128x128, reg [d1:4 d0:16 d1:1 d1:2 d1:64 d0:1 d0:64], lane [d1:8 d1:16 d0:2 d0:4 d0:8], "
                        "warp [d0:32 d1:32]");
  EXPECT_EQ(mmaOperand(acc, MmaOperand::B, 16, {32, 8}).text(),
            "16x128, reg [d0:4 d0:8 d1:1 d1:2 d1:64], lane [d0:1 d0:2 d1:4 d1:8 d1:16], warp [* d1:32]");
  EXPECT_EQ(mmaAcc(16, 16, {1, 1}, 1, {}, {.m = 4, .n = 4}).text(),
            "16x16, reg [d1:2 d0:8 d1:1], lane [d1:4 d1:8 d0:1 d0:2 d0:4], warp []");
}

// Element i of a lane in wgmma's D is row 16 · warp + lane / 4 (+ 8 for odd pairs), column 8 · (i / 4) + …, for any
// number of columns, repeats and all: the stored index is the register.
TEST(Fragments, StoredIndexIsTheRegisterOfWgmma) {
  for (const int64_t N : {8, 16, 24, 48, 64, 80, 96, 144, 192, 208, 256}) {
    const TileLayout acc = wgmmaAcc(64, N, 4);
    ASSERT_EQ(acc.numStored(), N / 2);
    for (unsigned warp = 0; warp < 4; ++warp)
      for (unsigned lane = 0; lane < numLanes; ++lane)
        for (int64_t i = 0; i < N / 2; ++i)
          ASSERT_EQ(acc.positionOf(i, {lane, warp}),
                    (Position{16 * warp + lane / 4 + (i & 2 ? 8 : 0), 8 * (i / 4) + 2 * (lane % 4) + (i & 1)}));
  }
}

// A second warpgroup takes the next 64 rows; rows that no group has left go to registers.
TEST(Fragments, WarpgroupsFollowAlongM) {
  EXPECT_EQ(wgmmaAcc(128, 16, 8).positionOf(0, {0, 4}), (Position{64, 0}));
  EXPECT_EQ(wgmmaAcc(64, 16, 8).positionOf(0, {0, 4}), (Position{0, 0}));
  const TileLayout tall = wgmmaAcc(128, 16, 4);
  EXPECT_EQ(tall.positionOf(tall.numStored() / 2), (Position{64, 0}));
}

// Where each thread adds products by itself, it has every row of A and column of B that its sums need, and all of K.
TEST(Fragments, OperandsOfMultiplyAdds) {
  const int64_t K = 12;
  const TileLayout acc = blocked({48, 32}, {1, 0}, {4, 4}, 4);
  const TileLayout A = fmaOperand(acc, MmaOperand::A, K), B = fmaOperand(acc, MmaOperand::B, K);
  EXPECT_EQ(A.text(), "48x12, rep 3x3, reg [d1:1 d1:2 d0:1 d0:2], lane [* * * d0:4 d0:8], warp [* *]");
  for (unsigned lane = 0; lane < numLanes; ++lane)
    for (int64_t stored = 0; stored < acc.numStored(); ++stored) {
      const Position at = acc.positionOf(stored, {lane, 3}), own = acc.positionOf(stored);
      for (int64_t k = 0; k < K; ++k) {
        EXPECT_EQ(A.positionOf(*A.storedAt({own[0], k}), {lane, 3}), (Position{at[0], k}));
        EXPECT_EQ(B.positionOf(*B.storedAt({k, own[1]}), {lane, 3}), (Position{k, at[1]}));
      }
    }
}

// Attention: D of S = Q·Kᵀ is, element by element of every lane, A of the next product, for any number of columns that
// is a multiple of 16; and what a reduction along the rows leaves is the same for both products.
TEST(Fragments, ScoresAreTheNextProductsOperand) {
  for (const int64_t columns : {16, 32, 64, 80, 96, 128, 208}) {
    const TileLayout scores = mmaAcc(64, columns, {4, 1}, 4), out = mmaAcc(64, 64, {4, 1}, 4);
    const TileLayout operand = mmaOperand(out, MmaOperand::A, columns, {16, 16});
    EXPECT_EQ(operand, scores);
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t step = 0; step < columns / 16; ++step)
        for (int j = 0; j < 8; ++j) {
          const Position want = elementOfA({16, 16}, j, static_cast<int>(lane) / 4, static_cast<int>(lane) % 4);
          EXPECT_EQ(scores.positionOf(8 * step + j, {lane}), (Position{want[0], want[1] + 16 * step}));
        }
    EXPECT_EQ(scores.slice(1), out.slice(1));
  }
}

} // namespace

// Swizzled tiles in shared memory, and the addresses that ldmatrix takes for tensor-core operands in them.

#include "dialect/simt/layout/SwizzledLayout.h"
#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/SharedAccess.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln::simt;

namespace {

// A swizzle undoes itself, whichever lines permute a piece.
TEST(Swizzle, IsAnInvolution) {
  for (const SwizzleBits &swizzleBits : {tmaSwizzle, {2, 0, 1}, {0, 2, 3}})
    for (const unsigned width : {16, 32, 64, 128}) {
      const F2Map map = swizzle(width, 12, swizzleBits);
      EXPECT_EQ(map.then(map), F2Map::identity(12));
      EXPECT_EQ(map == F2Map::identity(12), width == 16);
    }
}

// A bit of a piece's number is combined with the bit of the line's that is named.
TEST(Swizzle, LinesThatPermutePieces) {
  const F2Map map = swizzle(128, 12, {2, 0, 3});
  EXPECT_EQ(map(128), Vec{128 + 32});
  EXPECT_EQ(map(256), Vec{256});
  EXPECT_EQ(map(512), Vec{512 + 16});
  EXPECT_EQ(map(1024), Vec{1024 + 64});
}

// The same 16-byte column of eight rows lies in all 32 banks.
TEST(Swizzle, EightRowsCoverAllBanks) {
  for (const unsigned width : {16, 32, 64, 128}) {
    const F2Map map = swizzle(width, 12);
    for (Vec piece = 0; piece < width; piece += 16) {
      std::set<Vec> banks;
      for (Vec row = 0; row < 8; ++row)
        banks.insert(map(row * width + piece) % 128);
      EXPECT_EQ(banks.size(), 8u) << width << ", " << piece;
    }
  }
}

// A tile's elements have places of their own that fill the memory, and a position's is where the core's map and the
// strides say; where rows have no repeats the core's map says it alone.
TEST(SwizzledLayout, EveryElementHasItsPlace) {
  struct Tile {
    int64_t rows, columns;
    unsigned bits;
  };
  for (const Tile &tile : {Tile{64, 64, 16},
                           {64, 32, 16},
                           {64, 128, 16},
                           {96, 80, 16},
                           {48, 192, 16},
                           {33, 100, 8},
                           {208, 24, 32},
                           {16, 8, 16},
                           {6, 64, 16},
                           {1, 64, 8}})
    for (const unsigned inner : {0, 1}) {
      const int64_t sizes[] = {inner ? tile.rows : tile.columns, inner ? tile.columns : tile.rows};
      const std::optional<SwizzledLayout> swizzled = swizzledLayout(sizes, inner, tile.bits);
      ASSERT_EQ(swizzled.has_value(), tile.rows != 6) << tile.rows; // 3 repeats of 2 rows
      if (!swizzled)
        continue;
      std::set<int64_t> offsets;
      for (int64_t i = 0; i < swizzled->tile[0].padded; ++i)
        for (int64_t j = 0; j < swizzled->tile[1].padded; ++j) {
          const int64_t position[] = {i, j};
          offsets.insert(swizzled->offsetOf(position));
        }
      const int64_t count = swizzled->tile[0].padded * swizzled->tile[1].padded;
      EXPECT_EQ(static_cast<int64_t>(offsets.size()), count);
      EXPECT_EQ(*offsets.rbegin(), count - 1);
      EXPECT_EQ(swizzled->bytes(), count * tile.bits / 8);
    }
}

/// Units of the address lanes: which position's row each lane bit's lane begins at, `d0:4 d1:8 …`.
std::string addressLanes(const SharedAccess &access, const SwizzledLayout &swizzled, const TileLayout &layout) {
  const F2Map back = swizzled.core.inverse();
  std::string text;
  for (unsigned bit = 0; bit < laneBits; ++bit) {
    const Vec position = back(access.offsetOf(0, {1u << bit}));
    if (position == 0)
      continue;
    const Unit unit = layout.shape().unitOf(position);
    text += (text.empty() ? "d" : " d") + std::to_string(unit.dim) + ":" + std::to_string(unit.weight());
  }
  return text;
}

struct Operand {
  MmaOperand operand;
  MmaShape mma;
  unsigned inner; // the dimension that is stored contiguously
  SharedOp op;
  std::string lanes;
};

// Operands of one product of 32 × 16 … elements: which row's address each lane gives. Dimensions are (M, K) and (K, N).
TEST(SwizzledLayout, AddressesOfLdmatrix) {
  for (const Operand &example : {Operand{MmaOperand::A, {16, 16}, 1, SharedOp::rows, "d0:1 d0:2 d0:4 d0:8 d1:8"},
                                 {MmaOperand::A, {16, 16}, 0, SharedOp::columns, "d1:1 d1:2 d1:4 d0:8 d1:8"},
                                 {MmaOperand::B, {16, 16}, 0, SharedOp::rows, "d1:1 d1:2 d1:4 d0:8 d1:8"},
                                 {MmaOperand::B, {16, 16}, 1, SharedOp::columns, "d0:1 d0:2 d0:4 d0:8 d1:8"},
                                 {MmaOperand::A, {8, 32}, 1, SharedOp::rows, "d0:1 d0:2 d0:4 d0:8 d1:16"},
                                 {MmaOperand::B, {8, 32}, 0, SharedOp::rows, "d1:1 d1:2 d1:4 d0:16 d1:8"},
                                 {MmaOperand::A, {32, 8}, 1, SharedOp::rows, "d0:1 d0:2 d0:4 d0:8 d1:4"},
                                 {MmaOperand::B, {32, 8}, 0, SharedOp::rows, "d1:1 d1:2 d1:4 d0:4 d1:8"}}) {
    const TileLayout layout = mmaOperand(mmaAcc(16, 16, {}, 1), example.operand, example.mma.k, example.mma);
    const auto swizzled = swizzledLayout(layout.shape().sizes(), example.inner, example.mma.bits);
    const auto access = matrixAccess(layout, swizzled->core, example.mma.bits, example.op);
    ASSERT_TRUE(access) << layout.text();
    EXPECT_EQ(addressLanes(*access, *swizzled, layout), example.lanes) << layout.text();
    EXPECT_EQ(access->wavefronts(), 1u << access->matrix.size());
    const SharedOp other = example.op == SharedOp::rows ? SharedOp::columns : SharedOp::rows;
    EXPECT_EQ(matrixAccess(layout, swizzled->core, example.mma.bits, other), std::nullopt);
  }
}

// Reading operands of any extent takes a wavefront a matrix, by ldmatrix and by vectors of 16 bytes.
TEST(SwizzledLayout, OperandsDoNotConflict) {
  for (const int64_t K : {16, 32, 48, 64, 80, 96, 128, 192}) {
    const TileLayout A = mmaOperand(mmaAcc(64, 32, {4, 1}, 4), MmaOperand::A, K, {16, 16});
    const auto swizzled = swizzledLayout({64, K}, 1, 16);
    const auto access = matrixAccess(A, swizzled->core, 16, SharedOp::rows);
    ASSERT_TRUE(access) << K;
    EXPECT_EQ(access->matrix.size(), 2u);
    EXPECT_EQ(access->wavefronts(), 4 * access->instructions()) << K;
  }
}

// The best access is by ldmatrix where the operand lies as it takes it, of whichever kind, and there is such a thing.
TEST(SharedAccess, TheBestOfAll) {
  const auto best = [](MmaOperand operand, MmaShape mma, unsigned inner, bool hasMatrix) {
    const TileLayout layout = mmaOperand(mmaAcc(64, 64, {2, 2}, 4), operand, 64, mma);
    return bestAccess(layout, swizzledLayout({64, 64}, inner, mma.bits)->core, mma.bits, hasMatrix).op;
  };
  EXPECT_EQ(best(MmaOperand::A, {16, 16}, 1, true), SharedOp::rows);
  EXPECT_EQ(best(MmaOperand::A, {16, 16}, 0, true), SharedOp::columns);
  EXPECT_EQ(best(MmaOperand::B, {16, 16}, 0, true), SharedOp::rows);
  EXPECT_EQ(best(MmaOperand::B, {16, 16}, 1, true), SharedOp::columns);
  EXPECT_EQ(best(MmaOperand::B, {16, 16}, 1, false), SharedOp::vector);
  EXPECT_EQ(best(MmaOperand::A, {32, 8}, 1, true), SharedOp::rows);
  EXPECT_EQ(best(MmaOperand::A, {32, 8}, 0, true), SharedOp::vector);
}

// Columns that a lane has side by side are read four at a time of f32, and of bytes two by ldmatrix: without conflicts
// where the lines that are read at once permute the pieces.
TEST(SharedAccess, NeighbouringColumns) {
  const TileLayout numbers = mmaOperand(mmaAcc(64, 64, {4, 1}, 4, {}, {.n = 4}), MmaOperand::B, 32, {32, 8});
  const auto ofNumbers = [&](const SwizzleBits &swizzleBits) {
    return bestAccess(numbers, swizzledLayout({32, 64}, 1, 32, swizzleBits)->core, 32, true);
  };
  EXPECT_EQ(ofNumbers({2, 0, 1}).op, SharedOp::vector);
  EXPECT_EQ(ofNumbers({2, 0, 1}).element.size(), 2u);
  EXPECT_EQ(ofNumbers({2, 0, 1}).wavefronts(), 4 * ofNumbers({2, 0, 1}).instructions());
  EXPECT_EQ(ofNumbers(tmaSwizzle).wavefronts(), 8 * ofNumbers(tmaSwizzle).instructions());

  for (const auto &[columns, swizzleBits] :
       {std::pair(128, SwizzleBits{0, 2, 3}), std::pair(64, SwizzleBits{1, 2, 0})}) {
    const TileLayout bytes = mmaOperand(mmaAcc(64, columns, {4, 1}, 4, {}, {.n = 2}), MmaOperand::B, 64, {8, 32});
    const auto ofBytes = [&](const SwizzleBits &swizzleBits) {
      return bestAccess(bytes, swizzledLayout({64, columns}, 1, 8, swizzleBits)->core, 8, true);
    };
    EXPECT_EQ(ofBytes(swizzleBits).op, SharedOp::columns);
    EXPECT_EQ(ofBytes(swizzleBits).matrix.size(), 2u);
    EXPECT_EQ(ofBytes(swizzleBits).wavefronts(), 4 * ofBytes(swizzleBits).instructions());
    EXPECT_EQ(ofBytes(tmaSwizzle).wavefronts(), 8 * ofBytes(tmaSwizzle).instructions());
  }
  const TileLayout apart = mmaOperand(mmaAcc(64, 64, {4, 1}, 4), MmaOperand::B, 64, {8, 32});
  EXPECT_EQ(bestAccess(apart, swizzledLayout({64, 64}, 1, 8)->core, 8, true).op, SharedOp::vector);
}

// Rows that are not 16 bytes, aligned, are not read by ldmatrix, and vectors are as short as the alignment demands.
TEST(SharedAccess, RowsMustBeAligned) {
  const TileLayout A = mmaOperand(mmaAcc(16, 8, {}, 1), MmaOperand::A, 16, {16, 16});
  const unsigned bits = A.shape().coreBits();
  EXPECT_TRUE(matrixAccess(A, F2Map::identity(bits), 16, SharedOp::rows)); // row-major
  Vecs crooked(F2Map::identity(bits).columns());
  crooked[4] |= 4; // row 1 begins 8 bytes into a piece
  EXPECT_EQ(matrixAccess(A, F2Map(bits, crooked), 16, SharedOp::rows), std::nullopt);
  EXPECT_EQ(vectorAccess(A, F2Map(bits, crooked), 16).element.size(), 1u);
  crooked[4] ^= 4 | 1; // 2 bytes
  EXPECT_EQ(vectorAccess(A, F2Map(bits, crooked), 16).element.size(), 0u);
}

// Lanes that stand for nothing are not read by ldmatrix: two of them would ask for one row.
TEST(SharedAccess, LanesMustStandForUnits) {
  const auto layout = TileLayout::parse("8x8, reg [d1:1], lane [d1:2 d1:4 d0:1 d0:2 *], warp [d0:4]",
                                        [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
  EXPECT_EQ(matrixAccess(*layout, F2Map::identity(6), 16, SharedOp::rows), std::nullopt);
}

} // namespace

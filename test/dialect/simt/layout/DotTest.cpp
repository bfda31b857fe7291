// Products of whole tiles from one instruction after another: which registers each takes is looked up by positions.
// Padding along M and N is poison; along K it must be zero.

#include "dialect/simt/layout/Fragments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace kiln::simt;

namespace {

using Position = llvm::SmallVector<int64_t>;
constexpr float poison = std::numeric_limits<float>::quiet_NaN();

/// The registers of all threads.
struct File {
  TileLayout layout;
  std::vector<float> values;

  explicit File(const TileLayout &layout)
      : layout(layout), values(static_cast<size_t>(layout.numStored() * layout.numWarps() * numLanes)) {}
  float &at(unsigned warp, unsigned lane, int64_t stored) {
    return values[static_cast<size_t>((warp * numLanes + lane) * layout.numStored() + stored)];
  }
  /// value(position) inside the tile; outside, zero where dimension `zeroed` is past its end, else poison.
  template <class Value> void fill(Value value, std::optional<unsigned> zeroed) {
    for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
      for (unsigned lane = 0; lane < numLanes; ++lane)
        for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
          const Position position = layout.positionOf(stored, {lane, warp});
          const auto isPast = [&](unsigned dim) { return position[dim] >= layout.shape()[dim].size; };
          float &element = at(warp, lane, stored);
          element = isPast(0) || isPast(1) ? poison : static_cast<float>(value(position));
          if (zeroed && isPast(*zeroed))
            element = 0;
        }
  }
};

int valueA(const Position &at) { return static_cast<int>(at[0] * 3 + at[1] * 5) % 7 - 3; }
int valueB(const Position &at) { return static_cast<int>(at[0] * 2 + at[1] * 7) % 5 - 2; }

/// D += A · B as all warps do it, by the instruction `mma`: a fragment of it are registers that follow each other.
void multiply(File &A, File &B, File &D, MmaShape mma) {
  const TileLayout fragmentD = mmaAcc(16, 8, {}, 1), fragmentA = mmaOperand(fragmentD, MmaOperand::A, mma.k, mma),
                   fragmentB = mmaOperand(fragmentD, MmaOperand::B, mma.k, mma);
  for (int64_t d = 0; d < D.layout.numStored(); d += fragmentD.numStored()) {
    const Position base = D.layout.positionOf(d);
    for (int64_t k = 0; k < A.layout.shape()[1].padded; k += mma.k) {
      const int64_t a = *A.layout.storedAt({base[0], k}), b = *B.layout.storedAt({k, base[1]});
      for (unsigned warp = 0; warp < D.layout.numWarps(); ++warp) {
        float rows[16][32], columns[32][8];
        for (unsigned lane = 0; lane < numLanes; ++lane) {
          for (int64_t i = 0; i < fragmentA.numStored(); ++i) {
            const Position at = fragmentA.positionOf(i, {lane});
            rows[at[0]][at[1]] = A.at(warp, lane, a + i);
          }
          for (int64_t i = 0; i < fragmentB.numStored(); ++i) {
            const Position at = fragmentB.positionOf(i, {lane});
            columns[at[0]][at[1]] = B.at(warp, lane, b + i);
          }
        }
        for (unsigned lane = 0; lane < numLanes; ++lane)
          for (int64_t i = 0; i < fragmentD.numStored(); ++i) {
            const Position at = fragmentD.positionOf(i, {lane});
            for (unsigned j = 0; j < mma.k; ++j)
              D.at(warp, lane, d + i) += rows[at[0]][j] * columns[j][at[1]];
          }
      }
    }
  }
}

struct Case {
  int64_t M, N, K;
  unsigned bits;
  MmaStrides strides = {};
  KOrder order = KOrder::isa;
};

/// Elements of D inside the tile that are not the product, with K's padding zero in both operands or poison.
int64_t wrongElements(const Case &example, unsigned numWarps, bool zeroesK) {
  const WarpSplit split = *warpSplit(example.M, example.N, example.K, numWarps, false);
  const MmaShape mma = *mmaShapeFor(example.bits, example.K);
  const TileLayout acc = mmaAcc(example.M, example.N, split, numWarps, {}, example.strides);
  const auto operand = [&](MmaOperand which) { return mmaOperand(acc, which, example.K, mma, example.order); };
  File D(acc), A(operand(MmaOperand::A)), B(operand(MmaOperand::B));
  A.fill(valueA, zeroesK ? std::optional(1u) : std::nullopt);
  B.fill(valueB, zeroesK ? std::optional(0u) : std::nullopt);
  multiply(A, B, D, mma);
  int64_t wrong = 0;
  for (unsigned warp = 0; warp < numWarps; ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < acc.numStored(); ++stored) {
        const Position at = acc.positionOf(stored, {lane, warp});
        if (at[0] >= example.M || at[1] >= example.N)
          continue;
        int want = 0;
        for (int64_t k = 0; k < example.K; ++k)
          want += valueA({at[0], k}) * valueB({k, at[1]});
        wrong += !(D.at(warp, lane, stored) == static_cast<float>(want));
      }
  return wrong;
}

// Products of any extents come out right, in every operand width, by one warp or four, with poison past M and N.
TEST(Dot, TilesOfAnyExtent) {
  for (const Case &example : {Case{32, 16, 32, 16},
                              {64, 80, 32, 16},
                              {64, 96, 16, 16},
                              {64, 50, 50, 16},
                              {80, 64, 16, 16},
                              {32, 24, 33, 16},
                              {48, 48, 16, 16},
                              {20, 9, 40, 16},
                              {32, 24, 40, 32},
                              {32, 24, 64, 8},
                              {64, 32, 48, 8},
                              {128, 64, 32, 16}})
    for (const unsigned numWarps : {1, 4})
      EXPECT_EQ(wrongElements(example, numWarps, true), 0)
          << example.M << 'x' << example.N << 'x' << example.K << " of " << example.bits;
}

// So do those whose instructions take every second or fourth row or column, fewer where there are no more for a warp,
// and terms in the order of another product's sums.
TEST(Dot, RowsColumnsAndTermsInOtherOrders) {
  for (const Case &example : {Case{32, 64, 32, 32, {1, 4}},
                              {128, 32, 24, 32, {4, 1}},
                              {128, 128, 16, 32, {4, 4}, KOrder::accumulator},
                              {64, 80, 32, 32, {1, 4}, KOrder::accumulator},
                              {32, 16, 40, 32, {2, 2}, KOrder::accumulator},
                              {64, 64, 64, 8, {2, 2}},
                              {48, 96, 32, 8, {1, 2}},
                              {16, 8, 32, 8, {4, 4}}})
    for (const unsigned numWarps : {1, 4})
      EXPECT_EQ(wrongElements(example, numWarps, true), 0)
          << example.M << 'x' << example.N << 'x' << example.K << " of " << example.bits << ", every "
          << example.strides.m << "th row and " << example.strides.n << "th column";
}

// Where K is padded and that is not zero, it spoils the sums: 0 · NaN is NaN.
TEST(Dot, PaddingOfKMustBeZero) {
  EXPECT_EQ(wrongElements({32, 24, 33, 16}, 1, false), 32 * 24);
  EXPECT_EQ(wrongElements({32, 24, 32, 16}, 1, false), 0); // not padded
}

} // namespace

// The table of Fragments.h, continued over tiles of any size: units that one instruction has not go to registers.

#include "dialect/simt/layout/Fragments.h"

#include "dialect/simt/layout/Blocked.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

static constexpr unsigned mBits = 4, nBits = 3; // of an instruction's rows and columns

std::optional<MmaShape> mmaShapeFor(unsigned bits, int64_t K) {
  const int64_t core = Extent::of(K).core();
  for (const unsigned k : {256 / bits, 128 / bits})
    if (core >= k)
      return MmaShape{bits, k};
  return std::nullopt;
}

std::optional<WarpSplit> warpSplit(int64_t M, int64_t N, int64_t K, unsigned numWarps, bool rowsInWarp) {
  const Extent m = Extent::of(M), n = Extent::of(N);
  const int64_t mostM = m.core() >> mBits, mostN = n.core() >> nBits;
  std::optional<WarpSplit> best;
  int64_t reads = 0;
  for (unsigned alongM = 1; alongM <= std::min<int64_t>(mostM, numWarps); alongM *= 2)
    for (unsigned alongN = 1; alongN <= std::min<int64_t>(mostN, numWarps / alongM); alongN *= 2) {
      if (rowsInWarp && (alongN != 1 || alongM != numWarps))
        continue;
      const int64_t here = m.padded * K * alongN + n.padded * K * alongM;
      const unsigned used = alongM * alongN, usedByBest = best ? best->m * best->n : 0;
      if (used > usedByBest || (used == usedByBest && here <= reads)) {
        best = {alongM, alongN};
        reads = here;
      }
    }
  return best;
}

/// Fills up with bits that stand for nothing.
static Vecs padded(Vecs bases, unsigned numWarps) {
  bases.resize(llvm::Log2_32(numWarps), 0);
  return bases;
}

TileLayout mmaAcc(int64_t M, int64_t N, WarpSplit split, unsigned numWarps) {
  const TileShape tile({M, N});
  const Vecs m = tile.unitsOf(0), n = tile.unitsOf(1);
  const unsigned warpM = llvm::Log2_32(split.m), warpN = llvm::Log2_32(split.n);
  assert(m.size() >= mBits + warpM && n.size() >= nBits + warpN && split.m * split.n <= numWarps);
  Vecs regs = {n[0], m[3]};
  regs.append(n.begin() + nBits + warpN, n.end());
  regs.append(m.begin() + mBits + warpM, m.end());
  Vecs warps(m.begin() + mBits, m.begin() + mBits + warpM);
  warps.append(n.begin() + nBits, n.begin() + nBits + warpN);
  return TileLayout::get({M, N}, {regs, Vecs{n[1], n[2], m[0], m[1], m[2]}, padded(warps, numWarps), Vecs()});
}

namespace {
/// An operand's tile, seen from the accumulator.
struct OperandTile {
  unsigned outer; // the dimension that it shares with the accumulator, in either
  llvm::SmallVector<int64_t, 2> sizes;
  Vecs k, o; // units along K, and along the outer dimension

  OperandTile(const TileLayout &acc, MmaOperand operand, int64_t K) : outer(operand == MmaOperand::A ? 0 : 1) {
    sizes = {K, K};
    sizes[outer] = acc.shape()[outer].size;
    const TileShape tile(sizes);
    k = tile.unitsOf(1 - outer);
    o = tile.unitsOf(outer);
  }
  /// What stands, in the operand, where `basis` does in the accumulator: nothing for units of the other dimension.
  Vec of(const TileLayout &acc, Vec basis) const {
    if (basis == 0 || acc.shape().unitOf(basis).dim != outer)
      return 0;
    return o[acc.shape().unitOf(basis).bit];
  }
  Vecs of(const TileLayout &acc, Hw part) const {
    return llvm::map_to_vector<8>(acc.bases(part), [&](Vec basis) { return of(acc, basis); });
  }
};
} // namespace

TileLayout mmaOperand(const TileLayout &acc, MmaOperand operand, int64_t K, MmaShape mma) {
  const OperandTile tile(acc, operand, K);
  const bool isA = operand == MmaOperand::A;
  const Vecs &k = tile.k, &o = tile.o;
  const unsigned word = llvm::Log2_32(32 / mma.bits);
  assert(k.size() >= llvm::Log2_32(mma.k) && "expected the core of K to hold the instruction's");

  Vecs regs(k.begin(), k.begin() + word);
  if (isA)
    regs.push_back(o[3]);
  regs.append(k.begin() + word + 2, k.end());
  // Past one instruction, the operand has the outer dimension in registers where the accumulator has.
  const llvm::ArrayRef<Vec> further = llvm::ArrayRef<Vec>(o).drop_front(isA ? mBits : nBits);
  for (const Vec unit : tile.of(acc, Hw::reg))
    if (llvm::is_contained(further, unit))
      regs.push_back(unit);
  return TileLayout::get(tile.sizes, {regs, Vecs{k[word], k[word + 1], o[0], o[1], o[2]}, tile.of(acc, Hw::warp),
                                      tile.of(acc, Hw::block)});
}

TileLayout fmaAcc(int64_t M, int64_t N, unsigned numWarps) {
  const TileShape tile({M, N});
  const int64_t threads = int64_t{numLanes} * numWarps;
  const int64_t share = std::max<int64_t>(1, (int64_t{1} << tile.coreBits()) / threads);
  const int64_t columns = std::min({int64_t{4}, share, tile[1].core()}), rows = std::min(int64_t{8}, share / columns);
  return blocked({M, N}, {1, 0}, {rows, columns}, numWarps);
}

TileLayout fmaOperand(const TileLayout &acc, MmaOperand operand, int64_t K) {
  const OperandTile tile(acc, operand, K);
  Vecs regs = tile.k;
  llvm::copy_if(tile.of(acc, Hw::reg), std::back_inserter(regs), [](Vec unit) { return unit != 0; });
  return TileLayout::get(tile.sizes, {regs, tile.of(acc, Hw::lane), tile.of(acc, Hw::warp), tile.of(acc, Hw::block)});
}

TileLayout wgmmaAcc(int64_t M, int64_t N, unsigned numWarps) {
  const int64_t mostWarps = Extent::of(M).core() >> mBits;
  assert(mostWarps >= 4 && numWarps % 4 == 0 && "expected 64 rows and a group of four warps");
  return mmaAcc(M, N, {static_cast<unsigned>(std::min<int64_t>(mostWarps, numWarps)), 1}, numWarps);
}

} // namespace kiln::simt

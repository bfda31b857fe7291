// The table of Fragments.h, continued over tiles of any size: units that one instruction has not go to registers.

#include "dialect/simt/layout/Fragments.h"

#include "dialect/simt/layout/Blocked.h"

#include "llvm/ADT/Sequence.h"
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

std::optional<WarpSplit> warpSplit(int64_t M, int64_t N, int64_t K, unsigned numWarps, bool rowsInWarp,
                                   llvm::ArrayRef<int64_t> batch) {
  const auto products = static_cast<unsigned>(std::min(numWarps, 1u << TileShape(batch).coreBits()));
  numWarps /= products;
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
        best = {alongM, alongN, products};
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

/// The extents of a tile whose last two are these.
static llvm::SmallVector<int64_t> sizesOf(llvm::ArrayRef<int64_t> batch, int64_t rows, int64_t columns) {
  llvm::SmallVector<int64_t> sizes(batch);
  sizes.append({rows, columns});
  return sizes;
}

/// The units of all leading dimensions, the last one's lowest.
static Vecs unitsOfBatch(const TileShape &tile) {
  Vecs units;
  for (unsigned dim = tile.rank() - 2; dim-- > 0;)
    units.append(tile.unitsOf(dim));
  return units;
}

TileLayout mmaAcc(int64_t M, int64_t N, WarpSplit split, unsigned numWarps, llvm::ArrayRef<int64_t> batch) {
  const llvm::SmallVector<int64_t> sizes = sizesOf(batch, M, N);
  const TileShape tile(sizes);
  const Vecs m = tile.unitsOf(tile.rank() - 2), n = tile.unitsOf(tile.rank() - 1), b = unitsOfBatch(tile);
  const unsigned warpM = llvm::Log2_32(split.m), warpN = llvm::Log2_32(split.n), warpB = llvm::Log2_32(split.batch);
  assert(m.size() >= mBits + warpM && n.size() >= nBits + warpN && b.size() >= warpB &&
         split.m * split.n * split.batch <= numWarps);
  Vecs regs = {n[0], m[3]};
  regs.append(n.begin() + nBits + warpN, n.end());
  regs.append(m.begin() + mBits + warpM, m.end());
  regs.append(b.begin() + warpB, b.end());
  Vecs warps(m.begin() + mBits, m.begin() + mBits + warpM);
  warps.append(n.begin() + nBits, n.begin() + nBits + warpN);
  warps.append(b.begin(), b.begin() + warpB);
  return TileLayout::get(sizes, {regs, Vecs{n[1], n[2], m[0], m[1], m[2]}, padded(warps, numWarps), Vecs()});
}

namespace {
/// An operand's tile, seen from the accumulator.
struct OperandTile {
  unsigned inner, outer; // the dimension along K, and that of the last two which it shares with the accumulator
  llvm::SmallVector<int64_t> sizes;
  TileShape tile;
  Vecs k, o; // units along K, and along the outer dimension

  OperandTile(const TileLayout &acc, MmaOperand operand, int64_t K)
      : inner(acc.rank() - (operand == MmaOperand::A ? 1 : 2)), outer(acc.rank() - (operand == MmaOperand::A ? 2 : 1)),
        sizes(acc.shape().sizes()) {
    sizes[inner] = K;
    tile = TileShape(sizes);
    k = tile.unitsOf(inner);
    o = tile.unitsOf(outer);
  }
  /// What stands, in the operand, where `basis` does in the accumulator: nothing for units of the other dimension.
  Vec of(const TileLayout &acc, Vec basis) const {
    if (basis == 0 || acc.shape().unitOf(basis).dim == inner)
      return 0;
    return tile.vectorOf(acc.shape().unitOf(basis));
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
  // Past one instruction, the operand has the other dimensions in registers where the accumulator has.
  const llvm::ArrayRef<Vec> own = llvm::ArrayRef<Vec>(o).take_front(isA ? mBits : nBits);
  for (const Vec unit : tile.of(acc, Hw::reg))
    if (unit != 0 && !llvm::is_contained(own, unit))
      regs.push_back(unit);
  return TileLayout::get(tile.sizes, {regs, Vecs{k[word], k[word + 1], o[0], o[1], o[2]}, tile.of(acc, Hw::warp),
                                      tile.of(acc, Hw::block)});
}

TileLayout fmaAcc(int64_t M, int64_t N, unsigned numWarps, llvm::ArrayRef<int64_t> batch) {
  const llvm::SmallVector<int64_t> sizes = sizesOf(batch, M, N);
  const TileShape tile(sizes);
  const int64_t threads = int64_t{numLanes} * numWarps;
  const int64_t share = std::max<int64_t>(1, (int64_t{1} << tile.coreBits()) / threads);
  const int64_t columns = std::min({int64_t{4}, share, tile[tile.rank() - 1].core()});
  const auto order = llvm::to_vector(llvm::reverse(llvm::seq(tile.rank())));
  llvm::SmallVector<int64_t> perThread(batch.size(), 1);
  perThread.append({std::min(int64_t{8}, share / columns), columns});
  return blocked(sizes, order, perThread, numWarps);
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

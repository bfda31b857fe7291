// The table of Fragments.h, extended to tiles of any size: units beyond one instruction are in registers.

#include "dialect/simt/layout/Fragments.h"

#include "dialect/simt/layout/Blocked.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

static constexpr unsigned mBits = 4, nBits = 3; // bits of an instruction's rows and columns

std::optional<MmaShape> mmaShapeFor(unsigned bits, int64_t K) {
  const int64_t core = Extent::of(K).core();
  for (const unsigned k : {256 / bits, 128 / bits})
    if (core >= k)
      return MmaShape{bits, k};
  return std::nullopt;
}

std::optional<WarpSplit> warpSplit(int64_t M, int64_t N, int64_t K, unsigned numWarps, bool rowsInWarp,
                                   llvm::ArrayRef<int64_t> batch, bool sparesB) {
  const auto products = static_cast<unsigned>(std::min(numWarps, 1u << TileShape(batch).coreBits()));
  numWarps /= products;
  const Extent m = Extent::of(M), n = Extent::of(N);
  const int64_t maxM = m.core() >> mBits, maxN = n.core() >> nBits;
  std::optional<WarpSplit> best;
  int64_t reads = 0;
  for (unsigned alongM = 1; alongM <= std::min<int64_t>(maxM, numWarps); alongM *= 2)
    for (unsigned alongN = 1; alongN <= std::min<int64_t>(maxN, numWarps / alongM); alongN *= 2) {
      if (rowsInWarp && (alongN != 1 || alongM != numWarps))
        continue;
      const int64_t here = m.padded * K * alongN + n.padded * K * alongM;
      const unsigned used = alongM * alongN, usedByBest = best ? best->m * best->n : 0;
      if (used > usedByBest || (used == usedByBest && (sparesB ? here < reads : here <= reads))) {
        best = {alongM, alongN, products};
        reads = here;
      }
    }
  return best;
}

/// Adds zero bases for warps that hold copies.
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

namespace {
/// The units of one dimension of an accumulator: within an instruction, across warps, and across a thread's
/// instructions.
struct Dealt {
  Vecs own, warps, others;

  Dealt(const Vecs &units, unsigned ownBits, unsigned warpBits, unsigned stride) {
    assert(units.size() >= ownBits + warpBits && "expected an instruction for each warp");
    const auto skipped = std::min<size_t>(llvm::Log2_32(stride), units.size() - ownBits - warpBits);
    const llvm::ArrayRef<Vec> rest = llvm::ArrayRef<Vec>(units).drop_front(skipped);
    own = Vecs(rest.take_front(ownBits));
    warps = Vecs(rest.slice(ownBits, warpBits));
    others = Vecs(units.begin(), units.begin() + skipped);
    others.append(rest.begin() + ownBits + warpBits, rest.end());
  }
};
} // namespace

TileLayout mmaAcc(int64_t M, int64_t N, WarpSplit split, unsigned numWarps, llvm::ArrayRef<int64_t> batch,
                  MmaStrides strides) {
  const llvm::SmallVector<int64_t> sizes = sizesOf(batch, M, N);
  const TileShape tile(sizes);
  const Dealt m(tile.unitsOf(tile.rank() - 2), mBits, llvm::Log2_32(split.m), strides.m);
  const Dealt n(tile.unitsOf(tile.rank() - 1), nBits, llvm::Log2_32(split.n), strides.n);
  const Dealt b(unitsOfBatch(tile), 0, llvm::Log2_32(split.batch), 1);
  assert(split.m * split.n * split.batch <= numWarps);
  Vecs regs = {n.own[0], m.own[3]}, warps;
  for (const Dealt *dim : {&n, &m, &b})
    regs.append(dim->others);
  for (const Dealt *dim : {&m, &n, &b})
    warps.append(dim->warps);
  const Vecs lanes = {n.own[1], n.own[2], m.own[0], m.own[1], m.own[2]};
  return TileLayout::get(sizes, {regs, lanes, padded(warps, numWarps), Vecs()});
}

namespace {
/// An operand's tile in relation to the accumulator.
struct OperandTile {
  unsigned inner, outer; // the K dimension, and that of the last two shared with the accumulator
  llvm::SmallVector<int64_t> sizes;
  TileShape tile;
  Vecs k; // units along K

  OperandTile(const TileLayout &acc, MmaOperand operand, int64_t K)
      : inner(acc.rank() - (operand == MmaOperand::A ? 1 : 2)), outer(acc.rank() - (operand == MmaOperand::A ? 2 : 1)),
        sizes(acc.shape().sizes()) {
    sizes[inner] = K;
    tile = TileShape(sizes);
    k = tile.unitsOf(inner);
  }
  /// The operand's unit that corresponds to `basis` of the accumulator; none for units of the other dimension.
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

TileLayout mmaOperand(const TileLayout &acc, MmaOperand operand, int64_t K, MmaShape mma, KOrder order) {
  const OperandTile tile(acc, operand, K);
  const bool isA = operand == MmaOperand::A;
  Vecs k = tile.k;
  const unsigned word = llvm::Log2_32(32 / mma.bits);
  assert(k.size() >= llvm::Log2_32(mma.k) && "expected the core of K to hold the instruction's");
  if (order == KOrder::accumulator && word == 0 && mma.k == 8)
    std::rotate(k.begin(), k.begin() + 1, k.begin() + 3);

  // An instruction's rows of A are in the accumulator's lanes and second register bit, its columns of B in the others.
  const Vecs accRegs = tile.of(acc, Hw::reg), accLanes = tile.of(acc, Hw::lane);
  const Vecs own =
      isA ? Vecs{accLanes[2], accLanes[3], accLanes[4], accRegs[1]} : Vecs{accRegs[0], accLanes[0], accLanes[1]};
  Vecs regs(k.begin(), k.begin() + word);
  if (isA)
    regs.push_back(own[3]);
  regs.append(k.begin() + word + 2, k.end());
  // Beyond one instruction, the operand has a unit of the other dimensions in registers if the accumulator has.
  for (const Vec unit : accRegs)
    if (unit != 0 && !llvm::is_contained(own, unit))
      regs.push_back(unit);
  return TileLayout::get(tile.sizes, {regs, Vecs{k[word], k[word + 1], own[0], own[1], own[2]}, tile.of(acc, Hw::warp),
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
  const int64_t maxWarps = Extent::of(M).core() >> mBits;
  assert(maxWarps >= 4 && numWarps % 4 == 0 && "expected 64 rows and a group of four warps");
  return mmaAcc(M, N, {static_cast<unsigned>(std::min<int64_t>(maxWarps, numWarps)), 1}, numWarps);
}

} // namespace kiln::simt

// Layouts of the operands of products: of tensor-core instructions, and of multiply-adds.
//
// mma.sync multiplies A (16 × K) by B (K × 8) into D (16 × 8); wgmma multiplies 64 rows by any multiple of 8 columns.
// The PTX ISA has a formula for each type. With w = log2(elements in a 32-bit word), all are in this table of steps,
// lowest bit first:
//
//              reg                                    lane                            warp
//     D        n:1 m:8, then n:8 n:16 …               n:2 n:4 m:1 m:2 m:4             m:16 m:32 (wgmma)
//     A        k: the lowest w; m:8; k from w + 2     k: w, w + 1; m:1 m:2 m:4        m:16 m:32 (wgmma)
//     B        k: the lowest w; k from w + 2          k: w, w + 1; n:1 n:2 n:4
//
// With 16-bit operands, w = 1, and A's registers along k are D's along n. So D of one product, rounded, is A of the
// next without a move; attention uses this. The rows and columns of an instruction need not be adjacent in the tile.
// Its terms may be in any order that A, B and D share (MmaStrides, KOrder).

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// An mma.sync instruction: m16n8kK on operands of `bits` bits.
struct MmaShape {
  unsigned bits = 16; // 8, 16 or 32 (tf32)
  unsigned k = 16;    // 256 / bits or 128 / bits

  static constexpr unsigned m = 16, n = 8;
  bool operator==(const MmaShape &) const = default;
};

/// The operands of D = A · B + D.
enum class MmaOperand : uint8_t { A, B };

/// The instruction with the largest k for operands of `bits` bits in a sum of length `K`. Nothing if K's core is too
/// short, so that the operands must be padded with zeros.
std::optional<MmaShape> mmaShapeFor(unsigned bits, int64_t K);

/// The division of a product among the warps of a program. D is divided into `m` × `n` parts, a batch of products into
/// `batch` parts. If there are more warps than parts, some compute copies.
struct WarpSplit {
  unsigned m = 1, n = 1, batch = 1;
  bool operator==(const WarpSplit &) const = default;
};

/// The distances in the tile between the rows, and between the columns, of one instruction. They are powers of two, or
/// less if the tile has fewer rows or columns for a warp. For example, with n = 4 a lane has four adjacent columns of
/// B, operands of four instructions. It reads them as one vector if they are adjacent in memory too.
struct MmaStrides {
  unsigned m = 1, n = 1;
};

/// The split of D (M, N) = A (M, K) · B (K, N) that uses the most warps and, among those, reads the fewest operand
/// elements. Among equals, it is the one with the fewest rows per warp, because a loop keeps rows in registers. With
/// `sparesB` it is the one with the fewest columns, because elements of B are more expensive than those of A. With
/// `rowsInWarp`, for a reduction along the rows, it has n = 1 and uses all warps. Nothing if D's core is smaller than
/// an instruction, or there is no such split. A batch of matrices, with extents `batch`, is divided among warps first,
/// because no operand is then read twice.
std::optional<WarpSplit> warpSplit(int64_t M, int64_t N, int64_t K, unsigned numWarps, bool rowsInWarp,
                                   llvm::ArrayRef<int64_t> batch = {}, bool sparesB = false);

/// The accumulator D (…, M, N) with the leading extents `batch`. The core of M is a multiple of 16 · split.m, that of N
/// of 8 · split.n, and the product of the leading cores of split.batch.
TileLayout mmaAcc(int64_t M, int64_t N, WarpSplit split, unsigned numWarps, llvm::ArrayRef<int64_t> batch = {},
                  MmaStrides strides = {});
/// The order in which an instruction takes eight adjacent elements along K. Any order is correct if A and B agree. It
/// is the ISA's order, or that of an accumulator's columns; then an f32 accumulator is A of the next product without a
/// move.
enum class KOrder : uint8_t { isa, accumulator };
/// A (…, M, K) or B (…, K, N) for an accumulator of mmaAcc or wgmmaAcc. Each warp holds a copy of the elements that it
/// multiplies. K's core is a multiple of `mma.k`.
TileLayout mmaOperand(const TileLayout &acc, MmaOperand operand, int64_t K, MmaShape mma, KOrder order = KOrder::isa);

/// The accumulator D (…, M, N) of products that each thread adds by itself: up to 8 × 4 of the sums in a block of each.
TileLayout fmaAcc(int64_t M, int64_t N, unsigned numWarps, llvm::ArrayRef<int64_t> batch = {});
/// A (…, M, K) or B (…, K, N) for an accumulator of any layout whose products each thread adds by itself. For each of
/// its rows (columns), a thread has the whole of K in registers, K's units first.
TileLayout fmaOperand(const TileLayout &acc, MmaOperand operand, int64_t K);

/// The accumulator of wgmma: warps in groups of four along M, whose core is at least 64. If M has fewer rows than all
/// groups, further groups compute copies of the same rows. N is padded to a multiple of 8 by the rule of Extent.h. The
/// stored index is the number of the instruction's register where M is 64 a group.
TileLayout wgmmaAcc(int64_t M, int64_t N, unsigned numWarps);

} // namespace kiln::simt

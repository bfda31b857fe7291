// Reductions along a dimension: of each thread's registers, then of lanes, then of warps, by an operation that may take
// its operands in any order.
//
// Lanes that differ in a bit along the dimension combine what they have. A butterfly sends every value, and both lanes
// get every result; an exchange of halves sends half of the values, and each lane gets half of the results, so that a
// bit of the register number becomes that bit of the lane: with n register and l lane bits, 2ⁿ · l shuffles against
// 2ⁿ · (1 − 2⁻ˡ), and as many again where every lane wants all.
//
// Warps that differ in bits along the dimension leave partial results: a tile with one more dimension, whose positions
// are those warps. Converting it to a layout that has this dimension in registers is all there is to do.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// Lanes `lane` and `lane ^ 1 << bit` combine their values: all of them, or with `half`, those whose register number
/// has in bit `half` what the lane has in its; that bit goes out of the register numbers afterwards.
struct LaneStep {
  unsigned bit;
  std::optional<unsigned> half;
  bool operator==(const LaneStep &) const = default;
};

struct ReducePlan {
  /// 1. In registers: `folds[i]` are the stored indices of values that are combined into value i, by rising position.
  /// Those past the extent's end count as the operation's neutral element. Values are those of the operand's slice.
  std::vector<llvm::SmallVector<int64_t, 8>> folds;
  /// 2. Between lanes, one step after the other, for each repeat of the slice.
  llvm::SmallVector<LaneStep, 5> lanes;
  /// What is then where. The last dimension counts the warps with partial results; it has extent 1 when warps hold no
  /// more than lanes of one do.
  TileLayout partial;
  /// 3. The same with the last dimension in registers. Values are converted to it and combined along that dimension.
  TileLayout gathered;
  /// What is left then: the operand's slice, or, after exchanges, the slice with lanes that stand for units of its
  /// registers.
  TileLayout result;

  /// Shuffles a repeat of the slice takes, for values of up to 32 bits.
  unsigned shuffles() const;
};

/// The plan for a reduction of `layout` along `dim`. With `mayExchange`, halves are exchanged where that takes fewer
/// shuffles even when the result is brought back to the slice afterwards.
ReducePlan planReduce(const TileLayout &layout, unsigned dim, bool mayExchange);

} // namespace kiln::simt

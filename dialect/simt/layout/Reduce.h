// Reductions along a dimension by a commutative operation: first over each thread's registers, then over lanes, then
// over warps.
//
// Lanes that differ in a bit along the dimension combine their values. There are two ways. In a butterfly, each lane
// sends all values, and both lanes get all results. In an exchange of halves, each lane sends half of the values and
// gets half of the results; a bit of the register number then becomes that bit of the lane. With n register and l lane
// bits, a butterfly takes 2ⁿ · l shuffles, and exchanges 2ⁿ · (1 − 2⁻ˡ), or twice that if every lane needs all results.
//
// Warps that differ in bits along the dimension have partial results: a tile with one more dimension, whose positions
// are those warps. This tile is converted to a layout that has this dimension in registers.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// Lanes `lane` and `lane ^ 1 << bit` combine their values: all of them, or with `half`, those for which bit `half` of
/// the register number equals bit `bit` of the lane. That bit is then removed from the register numbers.
struct LaneStep {
  unsigned bit;
  std::optional<unsigned> half;
  bool operator==(const LaneStep &) const = default;
};

struct ReducePlan {
  /// 1. In registers: `folds[i]` are the stored indices of the values that are combined into value i of the operand's
  /// slice, by ascending position. Values past the extent's end are replaced by the identity element.
  std::vector<llvm::SmallVector<int64_t, 8>> folds;
  /// 2. Between lanes, one step after the other, for each repeat of the slice.
  llvm::SmallVector<LaneStep, 5> lanes;
  /// The layout of the partial results. Its last dimension counts the warps that have partial results; its extent is 1
  /// if no warps share the dimension.
  TileLayout partial;
  /// 3. The layout `partial` with the last dimension in registers. Values are converted to it and combined along that
  /// dimension.
  TileLayout gathered;
  /// The layout of the result: the operand's slice or, after exchanges, the slice with lanes in place of some
  /// registers.
  TileLayout result;

  /// Shuffles a repeat of the slice takes, for values of up to 32 bits.
  unsigned shuffles() const;
};

/// The plan for a reduction of `layout` along `dim`. With `mayExchange`, halves are exchanged if that takes fewer
/// shuffles, including a conversion of the result back to the slice.
ReducePlan planReduce(const TileLayout &layout, unsigned dim, bool mayExchange);

} // namespace kiln::simt

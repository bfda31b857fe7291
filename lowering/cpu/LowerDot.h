// Matrix products on native vectors. See LowerDot.cpp for the structure.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// Where a product's sums go.
struct Destination {
  mlir::Value buffer;            // scratch memory; null when every sum goes to the stores
  bool holdsAccumulator = false; // the accumulator's tile lies in `buffer`

  /// With stores, `tile` is what they take their elements from: the product, or the result of the loop that it is
  /// carried in. Then `first` says (i1) that the accumulator is zero and not yet in the buffer, `last` that the stores
  /// take the sums instead of the buffer, which nobody else reads: it is of `panelsOf` the tile. Without a loop both
  /// are null, and the stores take all.
  llvm::SmallVector<tile::StoreOp, 2> stores;
  mlir::Value tile, first, last;
};

/// The shape of a product's sums in panels of columns, [panel][row][column]: in the order in which they are computed.
mlir::RankedTensorType panelsOf(mlir::Type tile, Machine machine);

/// Emits `dot` before itself.
void lowerDot(tile::DotOp dot, const Destination &to, Machine machine,
              const llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace kiln::lowering::cpu

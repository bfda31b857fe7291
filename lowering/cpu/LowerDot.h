// Matrix products on native vectors. See LowerDot.cpp for the structure.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// The destination of a product's accumulators.
struct Destination {
  mlir::Value buffer;            // scratch memory; null if all accumulators go directly to the stores
  bool holdsAccumulator = false; // `buffer` has the old accumulator

  /// Fused stores (an epilogue) of `tile`: the product, or the result of the loop that carries it. In a loop, `first`
  /// (i1) means that the accumulator is zero and not yet in the buffer. `last` (i1) means that the stores receive the
  /// accumulators instead of the buffer. Only the product reads this buffer; its shape is panelsOf(tile). Without a
  /// loop both are null, and the stores receive all accumulators.
  llvm::SmallVector<tile::StoreOp, 2> stores;
  mlir::Value tile, first, last;
};

/// The shape of a product's accumulators in panels of columns, [panel][row][column], the order of their computation.
mlir::RankedTensorType panelsOf(mlir::Type tile, Machine machine);

/// Emits `dot` before itself.
void lowerDot(tile::DotOp dot, const Destination &to, Machine machine,
              const llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace kiln::lowering::cpu

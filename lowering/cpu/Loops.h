// Loop nests for the operations that need them: stores, reductions, and tiles that get scratch memory. Neighbouring
// ones over one shape share a nest, so that what they read is read once.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// Scratch memory for a tile: rows padded to whole vectors, and by `skew` elements more.
mlir::Value allocateBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type tile, Machine machine,
                           int64_t skew = 0);

/// The same for a tile whose rows lie one behind the other, `cpu.dense`, of rank 1.
mlir::Value allocateDense(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType tile, Machine machine);

/// One operation that needs a loop nest.
struct Root {
  enum class Kind { store, reduce, place, check } kind;
  mlir::Operation *op = nullptr; // the store, reduction or check; for `place` where it stands
  mlir::Value value;             // the tile that is evaluated
  mlir::Value buffer;            // where a placed tile or a reduction's tile goes; null for a reduction to a scalar
  int64_t axis = -1;             // reductions: the axis that disappears; checks: the last

  llvm::ArrayRef<int64_t> shape() const { return tile::shapeOf(value.getType()); }
  /// Reductions along another axis than the last keep a vector for each column instead of one for each row.
  bool isColumns() const { return kind == Kind::reduce && axis != static_cast<int64_t>(shape().size()) - 1; }
};

/// Loads that a nest has read.
using ReadTiles = llvm::SmallPtrSet<mlir::Operation *, 8>;

/// Emits the nest for `roots` before `before`; all have one shape, and are columns of one axis or none is. Results of
/// reductions to scalars replace their operation's result. `read` gets what the nest reads; null: it reads all anew.
void emitLoops(llvm::ArrayRef<Root> roots, mlir::Operation *before, Machine machine,
               const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, ReadTiles *read = nullptr);

} // namespace kiln::lowering::cpu

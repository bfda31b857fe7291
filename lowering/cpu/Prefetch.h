// Requests for memory that is not needed yet, spread over the loops of a product's micro-kernel, or of a nest that
// reads rows in turn: a burst of requests would keep these from their own operands.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// The numbers of those of `rows` that are to be asked for at k, in a loop over K with this step that asks for all.
llvm::SmallVector<mlir::Value> rowsAt(Evaluator &e, int64_t rows, mlir::Value k, int64_t K, int64_t step);

/// The position in its row of what asks for the `vector`-th vector: the last element, for where rows are not aligned,
/// the first came with the vector before it.
mlir::Value requestFor(Evaluator &e, int64_t vector);

/// The tiles of short rows that a product packs or copies in each step of the loop that it stands in, and no product
/// before it packs: during one step the memory of the next one's tiles comes to the second-level cache. Along a long
/// row the CPU looks ahead by itself; where rows are short and far apart, as those of a head of attention, it does so
/// in vain.
class NextStep {
public:
  NextStep(tile::DotOp dot, Evaluator &e);
  bool empty() const { return tiles.empty(); }
  /// Emits the requests that fall to the `block`-th of `blocks` parts of the product at k, in a loop over K with this
  /// step.
  void prefetch(mlir::Value block, int64_t blocks, mlir::Value k, int64_t K, int64_t step);

private:
  struct Tile {
    tile::LoadOp load;
    llvm::SmallVector<mlir::Value> offsets; // in the next step
    int64_t axis;                           // of its rows
  };
  std::optional<Tile> nextOf(tile::LoadOp load, mlir::scf::ForOp loop, int64_t longest);

  Evaluator &e;
  llvm::SmallVector<Tile> tiles;
};

/// The rows that a nest reads after this step of the loop that it stands in, where several of a view take turns: the
/// CPU looks ahead along each row by itself, but begins anew with each, and many at a time are soon at their ends.
class NextRows {
public:
  NextRows() = default;
  /// Of the loads among `accesses`, those of a nest of this shape in front of `before`. Tiles of other shapes are left
  /// out, except where extents of 1 are all that differs.
  NextRows(llvm::ArrayRef<tile::AccessOp> accesses, llvm::ArrayRef<int64_t> shape, mlir::Operation *before,
           Evaluator &e);
  /// Emits the requests for `count` elements of each row, from `first` on along the last axis, and at the nest's
  /// `index` along the others.
  void prefetch(Evaluator &e, Index index, mlir::Value first, int64_t count) const;

private:
  struct Row {
    tile::AccessOp load;
    llvm::SmallVector<mlir::Value> offsets; // in the next step
  };
  llvm::SmallVector<int64_t> shape; // of the nest
  llvm::SmallVector<Row> rows;
};

} // namespace kiln::lowering::cpu

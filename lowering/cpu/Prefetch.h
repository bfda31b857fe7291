// Software prefetches, spread over the loops of a product's micro-kernel or of a nest that reads rows in turn. A burst
// of prefetches would delay the loads of the loop itself.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// The indices of the rows to prefetch at position k. The loop over K with this step prefetches all `rows` rows.
llvm::SmallVector<mlir::Value> rowsAt(Evaluator &e, int64_t rows, mlir::Value k, int64_t K, int64_t step);

/// The position in its row at which vector number `vector` is prefetched: its last element. If rows are not aligned,
/// its first element is in the cache line of the vector before.
mlir::Value requestFor(Evaluator &e, int64_t vector);

/// The tiles with short rows that a product packs or copies in each iteration of the loop around it. Those that an
/// earlier product packs are left out. Each iteration prefetches the tiles of the next one to the L2 cache. The CPU's
/// own prefetcher works along long rows. It does not help if rows are short and far apart, as those of an attention
/// head.
class NextStep {
public:
  NextStep(tile::DotOp dot, Evaluator &e);
  bool empty() const { return tiles.empty(); }
  /// Emits the prefetches of part `block` of `blocks` parts of the product at position k, in a loop over K with this
  /// step.
  void prefetch(mlir::Value block, int64_t blocks, mlir::Value k, int64_t K, int64_t step);

private:
  struct Tile {
    tile::LoadOp load;
    llvm::SmallVector<mlir::Value> offsets; // in the next iteration
    int64_t axis;                           // of its rows
  };
  std::optional<Tile> nextTile(tile::LoadOp load, mlir::scf::ForOp loop, int64_t longest);

  Evaluator &e;
  llvm::SmallVector<Tile> tiles;
};

/// The rows that a nest reads in the next iteration of the loop around it, if it reads several rows of a view in turn.
/// The CPU's own prefetcher follows each row, but starts again with each row, and many short rows end soon.
class NextRows {
public:
  NextRows() = default;
  /// Selects the loads among `accesses` whose tiles have the nest's shape, up to extents of 1. The nest is in front of
  /// `before`.
  NextRows(llvm::ArrayRef<tile::AccessOp> accesses, llvm::ArrayRef<int64_t> shape, mlir::Operation *before,
           Evaluator &e);
  /// Emits prefetches of `count` elements of each row, from `first` on along the last axis, and at the nest's `index`
  /// along the others.
  void prefetch(Evaluator &e, Index index, mlir::Value first, int64_t count) const;

private:
  struct Row {
    tile::AccessOp load;
    llvm::SmallVector<mlir::Value> offsets; // in the next iteration
  };
  llvm::SmallVector<int64_t> shape; // of the nest
  llvm::SmallVector<Row> rows;
};

} // namespace kiln::lowering::cpu

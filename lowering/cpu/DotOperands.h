// Reads and packs the operands of a matrix product for its micro-kernel, as the attributes of `cpu-pack-operands`
// specify (PackOperands.cpp).
//
//   1. b is packed into panels of two vectors of columns, one row of the panel for each k. Elementwise operations that
//      compute b are fused into the packing. A transposed b is read along its rows and transposed block by block in
//      registers. If b is invariant in the loops around the product, it is packed once, before them. (DotPanels.cpp)
//   2. a is read in place, one scalar at a time, if it is entirely inside its view. Otherwise a zero-padded copy is
//      read. A column-major a is packed, a few elements for each k. (DotOperands.cpp)
//   3. AMX reads tiles of both. It packs a panel of b, piece by piece, while it multiplies the panel before.
//      (DotTiles.cpp)
//
// Some units multiply several terms at a time (ProductUnit.h). They read *words* instead of elements: a word has
// several neighbours along k. Elements past the end of an operand are set to 0, because the memory there may have NaN.
// The rows of a panel and the scalars of a are words, and a *step* along k is one word.

#pragma once

#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/ProductUnit.h"

namespace kiln::lowering::cpu {

class DotOperands {
public:
  /// `rows` rows of the result are computed at a time. Code is emitted at the evaluator's position, before the product.
  DotOperands(tile::DotOp dot, Evaluator &e, const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, int64_t rows);

  /// Emits the bounds.
  void bound();
  /// Emits the copy of a, if it is copied whole.
  void place();
  /// Emits `body` for each pair of matrices of the batch (leading dimensions). The functions below are for that pair.
  void forMatrices(llvm::function_ref<void()> body);
  /// Emits the packing of a, if it is packed matrix by matrix, and allocates a panel of b.
  void pack();
  /// The index in the tile of a row and column of the pair's matrix, and the pair's number in row-major order.
  Index in(Ix row, Ix column) const;
  mlir::Value number();

  /// Bounds (index type): steps from `steps` on, rows from mBound on and columns from nBound on only add zeros.
  mlir::Value steps, mBound, nBound;
  /// The steps of the tiles.
  int64_t depth() const { return K / group; }
  /// The number of steps that begin below position `bound` along k, and the step that holds a position.
  mlir::Value stepsBelow(mlir::Value bound);
  mlir::Value stepAt(mlir::Value k);
  /// The steps of the tiles that hold steps below `count`.
  mlir::Value wholeTiles(mlir::Value count);
  /// The number of leading positions that are inside `view`, for a tile dimension of `extent` that begins at `offset`
  /// along `axis`.
  mlir::Value boundIn(mlir::Value view, int64_t axis, mlir::Value offset, int64_t extent);

  /// Selects the panel of b whose columns begin at `n` for readB(). `valid` is the number of columns inside the tile,
  /// for each vector of the panel. Emits its packing, unless it is packed already, except for the first `packed`
  /// pieces.
  void selectPanel(mlir::Value n, llvm::ArrayRef<int64_t> valid, mlir::Value packed = {});
  /// Whether a panel whose columns are all inside the tile may be packed while another is read.
  bool packsAhead() const { return hasTiles(unit) && !packedBefore; }
  /// The number of pieces of such a panel (index type). piecesAtATime() is the number to pack in each step of the
  /// tiles, so that all pieces are packed in time.
  mlir::Value pieces();
  int64_t piecesAtATime() const;
  /// Emits the packing of pieces `begin` to `end` of the panel that begins at `n`.
  void packPieces(mlir::Value n, mlir::Value begin, mlir::Value end);
  /// Emits prefetches for the panel that begins at `n` and is packed next. Each block of rows prefetches a part of it
  /// in its loop over the steps, `stride` at a time. This call emits the part for the block at `m` and the step `step`.
  /// For a transposed b, which is read in long streams, the CPU's own prefetcher suffices.
  void prefetchPanel(mlir::Value n, mlir::Value m, mlir::Value step, int64_t stride);
  bool prefetches();

  /// Whether a is read from a view that may end inside the tile.
  bool isBounded() const { return mEdge && readsView; }
  /// The element or word of a at row `i` of the block. `row` has row positions that are safe to read.
  mlir::Value readA(llvm::ArrayRef<mlir::Value> row, size_t i, mlir::Value step);
  /// One vector of a row of the panel.
  mlir::Value readB(mlir::Value step, int64_t vector);
  /// Emits a product on AMX tiles. It multiplies the block of 2 · tileRows rows from m on with the panel, over the
  /// whole tiles' steps in [begin, end). Stores the accumulators to `acc`, a memref, from `row` on. `between` is called
  /// in each step; it receives the carried values, initially `carried`, and returns the next ones. Returns the last
  /// ones.
  llvm::SmallVector<mlir::Value>
  multiplyTiles(mlir::Value m, mlir::Value begin, mlir::Value end, mlir::Value acc, mlir::Value row,
                mlir::ValueRange carried,
                llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value step, mlir::ValueRange carried)> between);

private:
  /// For packing b before the loops in which it is invariant: into `panels`, at the position of `before`.
  DotOperands(tile::DotOp dot, Evaluator &before, const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, int64_t rows,
              mlir::Value panels);

  /// A load that may extend past its view along `axis` of the tile; positions past the view are padding.
  struct Edge {
    tile::LoadOp load;
    int64_t axis;
  };
  llvm::SmallVector<mlir::Value> inLeft(mlir::Value row, mlir::Value column) const;
  std::optional<Edge> findEdge(mlir::Value tile, int64_t axis);
  mlir::Value emitBound(std::optional<Edge> edge, int64_t extent);
  void whereInside(std::optional<Edge> edge, int64_t extent, llvm::function_ref<void()> body);
  void assumeK(std::optional<Edge> edge, bool holds);

  void packA(mlir::Value tile);
  void storePart(mlir::Value column, int64_t panel, int64_t first, mlir::Value step);
  mlir::Value copyOf(mlir::Value tile, mlir::Operation *before);
  mlir::Value readView(tile::LoadOp load);

  mlir::Value loadTile(mlir::Value memory, llvm::ArrayRef<mlir::Value> at);
  void fillTiles();
  void copyBlocks(mlir::Value tile);
  void transposeBlocks(mlir::Value tile);
  void fillBlocks();

  void packBefore(int64_t loops);
  mlir::Value makePanels(Evaluator &at, int64_t count);
  void packPanel(mlir::Value n, llvm::ArrayRef<int64_t> valid);
  mlir::Value slotOf(mlir::Value n);
  void packLast(mlir::Value n);
  void packWords(mlir::Value n, llvm::ArrayRef<int64_t> valid, Ix step);
  void transposeInside(mlir::Value n, mlir::Value column, mlir::Value k, int64_t valid);
  void storePanel(mlir::Value value, mlir::Value step, mlir::Value column);
  void packRows(mlir::Value n, llvm::ArrayRef<int64_t> valid);
  void packAll();
  void packTransposed(int64_t vectors, llvm::function_ref<std::pair<mlir::Value, mlir::Value>(mlir::Value)> placeOf);
  void transposeBlock(mlir::Value n, mlir::Value column, mlir::Value bound, mlir::Value k, int64_t valid);
  mlir::Value wordsAlong(mlir::Value n, mlir::Value k, int64_t valid);

  bool isWhole(mlir::Value bound) const;
  void forSteps(std::optional<Edge> edge, int64_t unroll, llvm::function_ref<void(Ix step)> body);
  void forPartialStep(mlir::Value last, llvm::function_ref<void(Ix step)> body);
  mlir::Value wordsAcross(llvm::function_ref<mlir::Value(Ix k)> row, Ix step);
  mlir::Value asWords(mlir::Value elements);
  mlir::Value zeroWord();
  int64_t span() const { return lanes * group; } // of a block that is transposed, along k

  tile::DotOp dot;
  Evaluator &e;
  const llvm::DenseMap<mlir::Value, mlir::Value> &buffers;
  const Unit unit;
  const int64_t group;
  const mlir::Type element, word;        // equal if a step is one k
  const llvm::ArrayRef<int64_t> leading; // extents of the dimensions before the last two
  const int64_t M, N, K, lanes, rows, panelRows;
  const bool isTransposed;   // b is contiguous along k in memory
  Index pair;                // the present pair of matrices, along the leading dimensions
  mlir::Value left, a;       // the tile of a or of its transpose, and its memory
  mlir::Value kBound;        // `steps` in positions
  mlir::Value panels;        // of b: [slot][step][column]
  mlir::Value slot;          // of the panel that is read or written
  bool packedBefore = false; // every panel has its own slot; otherwise all use one slot in turn
  bool swapped = false;      // a is read as a[k, m]
  bool aPanels = false;      // a is packed: [m / panelRows][step][m % panelRows]
  bool aDropsUnits = false;  // a's memory lacks a's leading dimensions of extent 1
  bool mEdge = false, readsView = false;
};

/// The vectors of the transposed square block.
llvm::SmallVector<mlir::Value> transposed(Evaluator &e, llvm::SmallVector<mlir::Value> block);

/// Emits `body` for every panel of N columns that begins below `end`; `valid` as for `selectPanel`.
void forPanels(Evaluator &e, int64_t N, mlir::Value end,
               llvm::function_ref<void(mlir::Value n, llvm::ArrayRef<int64_t> valid)> body);
/// As above, with values that each panel's body receives from the body before.
void forPanels(Evaluator &e, int64_t N, mlir::Value end, mlir::ValueRange carried,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value n, llvm::ArrayRef<int64_t> valid,
                                                                 mlir::ValueRange carried)>
                   body);

} // namespace kiln::lowering::cpu

// The operands of a matrix product, brought to where the micro-kernel streams through them, as the attributes of
// `cpu-pack-operands` say (PackOperands.cpp).
//
//   1. b is packed into panels of two vectors of columns, one row of the panel for each k. Whatever b is computed from
//      is computed while packing; a transposed b is read along its rows and turned block by block in registers. A b
//      that is the same in every step of the loops around the product is packed once, before them. (DotPanels.cpp)
//   2. a is read in place, one scalar at a time, where it lies whole inside its view; else a zero-padded copy is read.
//      A column-major a is packed, a few elements for each k. (DotOperands.cpp)
//   3. AMX reads tiles of both, and packs a panel of b, piece by piece, while it multiplies the one before.
//   (DotTiles.cpp)
//
// A unit that takes several terms at a time (ProductUnit.h) has a *word* where multiply-adds have an element: so many
// neighbours along k, those past the end of an operand 0, since what memory holds there may be NaN. The rows of a panel
// and the scalars of a are words, and a *step* along k is one of them.

#pragma once

#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/ProductUnit.h"

namespace kiln::lowering::cpu {

class DotOperands {
public:
  /// `rows` of the result are computed at a time. Code goes where the evaluator stands, before the product.
  DotOperands(tile::DotOp dot, Evaluator &e, const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, int64_t rows);

  /// Emits the bounds.
  void bound();
  /// Emits the copy of a, if it is copied whole.
  void place();
  /// Emits `body` for each pair of matrices, which the leading dimensions number: all that follows is of that pair.
  void forMatrices(llvm::function_ref<void()> body);
  /// Emits the packing of a, if it is packed matrix by matrix, and makes room for a panel of b.
  void pack();
  /// The index of a row and column of the pair's matrix in its tile, and the pair's number in row-major order.
  Index in(Ix row, Ix column) const;
  mlir::Value number();

  /// Only steps below `steps`, rows below mBound and columns below nBound can give sums other than zero (index type).
  mlir::Value steps, mBound, nBound;
  /// The steps of the tiles.
  int64_t depth() const { return K / group; }
  /// The number of steps that begin below position `bound` along k, and the step that holds a position.
  mlir::Value stepsBelow(mlir::Value bound);
  mlir::Value stepAt(mlir::Value k);
  /// The steps of the tiles that hold steps below `count`.
  mlir::Value wholeTiles(mlir::Value count);
  /// Positions below this one are inside `view` when the tile's dimension of `extent` begins at `offset` of `axis`.
  mlir::Value boundIn(mlir::Value view, int64_t axis, mlir::Value offset, int64_t extent);

  /// From here on the panel of b whose columns begin at `n` is read; `valid` says how many columns lie in the tile, for
  /// each of its vectors. Emits its packing, if it is not packed already, or what is left of it after the first
  /// `packed` pieces.
  void turnTo(mlir::Value n, llvm::ArrayRef<int64_t> valid, mlir::Value packed = {});
  /// Whether a panel whose columns all lie in the tile may be packed while another is read.
  bool packsAhead() const { return hasTiles(unit) && !packedBefore; }
  /// The pieces of such a panel (index type), and how many to pack in each step of the tiles so that all get done.
  mlir::Value pieces();
  int64_t piecesAtATime() const;
  /// Emits the packing of those from `begin` to `end` of the panel that begins at `n`.
  void packPieces(mlir::Value n, mlir::Value begin, mlir::Value end);
  /// Emits a request for memory of the panel that begins at `n` and is packed next: a part of the share that falls to
  /// the block of rows at `m`, and the whole share in a loop over the steps that takes `stride` of them at a time. A
  /// transposed b comes in long streams that the CPU sees by itself.
  void prefetchPanel(mlir::Value n, mlir::Value m, mlir::Value step, int64_t stride);
  bool prefetches();

  /// Whether a is read from a view that may end before the tile does.
  bool isBounded() const { return mEdge && readsView; }
  /// a at the block's i-th row: one element or word. `row` holds positions that may be read.
  mlir::Value readA(llvm::ArrayRef<mlir::Value> row, size_t i, mlir::Value step);
  /// One vector of a row of the panel.
  mlir::Value readB(mlir::Value step, int64_t vector);
  /// Emits, on AMX's tiles, the sums of the block of 2 · tileRows rows from m on and the panel, of the whole tiles'
  /// steps in [begin, end), and stores them to `sums`, a memref, from `row` on. `between` is called in each step and
  /// gives the next of the values that it carries from `carried` on. Their last ones.
  llvm::SmallVector<mlir::Value>
  multiplyTiles(mlir::Value m, mlir::Value begin, mlir::Value end, mlir::Value sums, mlir::Value row,
                mlir::ValueRange carried,
                llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value step, mlir::ValueRange carried)> between);

private:
  /// The part of them that packs b before the loops that do not change it, into `panels`, where `before` stands.
  DotOperands(tile::DotOp dot, Evaluator &before, const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, int64_t rows,
              mlir::Value panels);

  /// A load that ends at a view's edge: along `axis` of the tile only that many positions can be other than padding.
  struct Edge {
    tile::LoadOp load;
    int64_t axis;
  };
  llvm::SmallVector<mlir::Value> inLeft(mlir::Value row, mlir::Value column) const;
  std::optional<Edge> edgeOf(mlir::Value tile, int64_t axis);
  mlir::Value boundOf(std::optional<Edge> edge, int64_t extent);
  void whereInside(std::optional<Edge> edge, int64_t extent, llvm::function_ref<void()> body);
  void assumeK(std::optional<Edge> edge, bool holds);

  void packA(mlir::Value tile);
  void storePart(mlir::Value column, int64_t panel, int64_t first, mlir::Value step);
  mlir::Value copyOf(mlir::Value tile, mlir::Operation *before);
  mlir::Value readView(tile::LoadOp load);

  mlir::Value loadTile(mlir::Value memory, llvm::ArrayRef<mlir::Value> at);
  void fillTiles();
  void copyBlocks(mlir::Value tile);
  void turnBlocks(mlir::Value tile);
  void fillBlocks();

  void packBefore(int64_t loops);
  mlir::Value makePanels(Evaluator &at, int64_t count);
  void packPanel(mlir::Value n, llvm::ArrayRef<int64_t> valid);
  mlir::Value slotOf(mlir::Value n);
  void packLast(mlir::Value n);
  void packWords(mlir::Value n, llvm::ArrayRef<int64_t> valid, Ix step);
  void turnInside(mlir::Value n, mlir::Value column, mlir::Value k, int64_t valid);
  void storePanel(mlir::Value value, mlir::Value step, mlir::Value column);
  void packRows(mlir::Value n, llvm::ArrayRef<int64_t> valid);
  void packAll();
  void packTransposed(int64_t vectors, llvm::function_ref<std::pair<mlir::Value, mlir::Value>(mlir::Value)> placeOf);
  void turnBlock(mlir::Value n, mlir::Value column, mlir::Value bound, mlir::Value k, int64_t valid);
  mlir::Value wordsAlong(mlir::Value n, mlir::Value k, int64_t valid);

  bool isWhole(mlir::Value bound) const;
  void forSteps(std::optional<Edge> edge, int64_t unroll, llvm::function_ref<void(Ix step)> body);
  void forPartOf(mlir::Value last, llvm::function_ref<void(Ix step)> body);
  mlir::Value wordsAcross(llvm::function_ref<mlir::Value(Ix k)> row, Ix step);
  mlir::Value asWords(mlir::Value elements);
  mlir::Value zeroWord();
  int64_t span() const { return lanes * group; } // of a block that is turned, along k

  tile::DotOp dot;
  Evaluator &e;
  const llvm::DenseMap<mlir::Value, mlir::Value> &buffers;
  const Unit unit;
  const int64_t group;
  const mlir::Type element, word;        // the same where a step is one k
  const llvm::ArrayRef<int64_t> leading; // extents of the dimensions before the last two
  const int64_t M, N, K, lanes, rows, panelRows;
  const bool isTurned;       // b lies along k in memory
  Index pair;                // of the matrices at hand, along the leading dimensions
  mlir::Value left, a;       // the tile that a, or its transpose, is, and where it lies
  mlir::Value kBound;        // `steps` in positions
  mlir::Value panels;        // of b: [slot][step][column]
  mlir::Value slot;          // of the panel that is read or written
  bool packedBefore = false; // every panel has its slot, else they take turns in one
  bool swapped = false;      // a is read as a[k, m]
  bool aPanels = false;      // a is packed: [m / panelRows][step][m % panelRows]
  bool aDropsUnits = false;  // of a's leading dimensions those of extent 1 are not in memory
  bool mEdge = false, readsView = false;
};

/// The vectors of a square block, turned over.
llvm::SmallVector<mlir::Value> turned(Evaluator &e, llvm::SmallVector<mlir::Value> block);

/// Emits `body` for every panel of N columns that begins below `end`; `valid` as for `turnTo`.
void forPanels(Evaluator &e, int64_t N, mlir::Value end,
               llvm::function_ref<void(mlir::Value n, llvm::ArrayRef<int64_t> valid)> body);
/// The same with values that the body gets from the panel before, and gives to the next one.
void forPanels(Evaluator &e, int64_t N, mlir::Value end, mlir::ValueRange carried,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value n, llvm::ArrayRef<int64_t> valid,
                                                                 mlir::ValueRange carried)>
                   body);

} // namespace kiln::lowering::cpu

// Addresses and predicates of a tile's elements in global memory, for one thread. A *vector* consists of the elements
// that one instruction moves.
//
// Let a tile begin at offsets o of a view with strides s. Position p of the tile is at byte (Σ (oᵈ + pᵈ) · sᵈ) · size
// of the view. A thread's p is the sum of a part that depends on the thread (its share) and of a constant. So the
// address is computed once for the tile, and once for each distinct constant in dimensions of unknown stride. The other
// constants become displacements of the instructions.
//
// An element is in bounds if low ≤ pᵈ < high in every dimension, with
//
//     low = max(0, −oᵈ)      high = min(tile's extent, view's extent − oᵈ)
//
// These are computed once for the tile, in 64 bits if necessary. The thread's share is subtracted from both. The
// constants are compared with the differences in 32 bits. If the tile's extent is 1, o is in bounds if it is below the
// view's extent as an unsigned number.
//
// Vectors of V elements begin at multiples of V along the contiguous dimension, so `low` is a multiple of V. If the
// view may end within a vector (`simt.ragged`), `high` is rounded down to a multiple of V. A vector that begins below
// `high` is completely inside. The view ends within the vector that begins at `high`. The rounding's remainder is the
// number of elements of this vector that are inside.

#pragma once

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/SimtDialect.h"

#include <map>

namespace kiln::lowering::gpu {

/// One tile in one view.
class GlobalTile {
public:
  /// Vectors have one element if the access is atomic.
  GlobalTile(ThreadCode &code, tile::AccessOp access);
  /// A tile with a layout at `subscripts`. For each dimension of the view, a subscript is the offset of a block, or an
  /// index tile with all positions. The attribute `tile.inside` of `op` lists the dimensions that are in bounds.
  GlobalTile(ThreadCode &code, mlir::Operation *op, mlir::Value view, mlir::ValueRange subscripts,
             mlir::RankedTensorType tile, int64_t vector, mlir::Value mask = {});

  /// The stored indices at which vectors begin, except vectors that are past the tile's end in all threads.
  Indices vectors() const;
  mlir::Value address(int64_t stored);
  int64_t displacement(int64_t stored) const;
  /// Whether a vector is completely inside, and `also` holds; null if this is true for all.
  mlir::Value isInside(int64_t stored, mlir::Value also = {});
  /// Whether the view ends within a vector of the tile, equal in all threads; null if it cannot.
  mlir::Value isCut() const { return cut; }
  /// Whether the view ends within this vector; positions in other dimensions are not checked.
  mlir::Value isCut(int64_t stored) const;
  /// Whether a vector is inside along all dimensions except the one in which the view may end within a vector. Null if
  /// all vectors are.
  mlir::Value isInsideOtherAxes(int64_t stored) { return insideBut(cutAxis, stored, {}); }
  /// For a vector within which the view ends: the largest number of its elements that are inside, and whether its
  /// element at `index` is inside. Null if that element always is.
  int64_t maxRest() const { return knownRest.value_or(vector - 1); }
  mlir::Value isInRest(int64_t index) const;
  /// The first position of a vector along the contiguous dimension, without the thread's share.
  int64_t placeOf(int64_t stored) const { return layout.positionOf(stored)[fastest()]; }
  /// The number of bytes (i32) of a vector along `dim` that are in bounds, if it may be partly in bounds.
  mlir::Value bytesInside(int64_t stored, unsigned dim);

  const simt::LayoutAttr attribute;
  const simt::TileLayout layout;
  const mlir::Type element; // the type in memory: i8 for bool
  const int64_t vector;     // elements of a vector
  const int64_t bytes;      // of an element

private:
  /// Bounds (i32) of the constant part of a position in one dimension, after subtraction of the thread's share. `low`
  /// is null if no position is below the view, `high` if the view does not end before the tile. If the tile's extent is
  /// 1, `inside` is whether its position is in the view, and both are null.
  struct Bounds {
    mlir::Value low, high, inside;
  };
  /// Positions in one dimension of the view that an index tile gives: those of the thread (i64), and the view's extent.
  struct IndexTile {
    Values positions;
    mlir::Value extent;
  };
  void findStrides(mlir::MemRefType type);
  void findBounds(mlir::MemRefType type, mlir::Operation *op);
  /// Sets `cut`, `rest` and the bound for the axis along which the view may end within a vector.
  void findCut(unsigned axis, mlir::MemRefType type);
  /// The tile's contiguous dimension, along which vectors extend.
  unsigned fastest() const;
  mlir::Value insideBut(std::optional<unsigned> without, int64_t stored, mlir::Value inside);
  void findNames();
  mlir::Value isPositionInside(mlir::Value offset, mlir::Value extent);
  Bounds boundsOf(unsigned axis, mlir::Value extent);
  Bounds nearBoundsOf(unsigned axis, mlir::Value extent);
  /// Whether the distance from `offset` to the view's end is a number of 32 bits, and so is its sum with a position.
  bool isNear(mlir::Value offset) const;
  /// Follows at most `effort` additions.
  mlir::Value offsetIn32Bits(mlir::Value offset, int effort = 4);
  mlir::Value bytesTo(unsigned axis);
  mlir::Value strideBytes(unsigned axis);
  /// The index, among the thread's positions in IndexTile, that belongs to a stored value.
  int64_t indexOf(int64_t stored) const;
  mlir::Value isInsideAlong(int64_t stored, unsigned axis);
  mlir::Value isWithin(int64_t stored, unsigned dim);
  bool isIndexed(unsigned axis) const { return mlir::isa<mlir::RankedTensorType>(subscripts[axis].getType()); }
  /// The number of different positions of a thread's vectors along an axis of the view.
  int64_t positionsAlong(unsigned axis) const;
  unsigned axes() const { return static_cast<unsigned>(subscripts.size()); }

  ThreadCode &code;
  const bool fits32; // the view has the attribute `tile.fits_32`
  const mlir::Value view;
  const llvm::SmallVector<mlir::Value, 4> subscripts;
  llvm::SmallVector<unsigned> dims;              // of the tile, by axes of the view without an index tile
  unsigned indexRank = 0;                        // rank of the index tiles, whose dimensions are the tile's first
  mlir::Value index;                             // one of the index tiles
  llvm::SmallVector<int64_t> strides;            // in elements; kDynamic
  llvm::SmallVector<mlir::Value> unknownStrides; // in bytes: unsigned i32 if it fits, else i64
  llvm::SmallVector<IndexTile> indexTiles;       // by axes
  llvm::SmallVector<Bounds> bounds;
  std::optional<unsigned> cutAxis;
  mlir::Value cut, rest; // rest: the remainder of `high` by the vector's size, i32
  std::optional<int64_t> knownRest;
  llvm::SmallVector<unsigned> byPositions; // axes, in ascending order of the number of a thread's positions
  Values mask;                             // of the thread's values; empty without a mask
  mlir::Value base;
  llvm::DenseMap<std::pair<unsigned, int64_t>, mlir::Value> insides,
      withins;                              // by axis or dimension, and constant part of the position
  std::map<Indices, mlir::Value> addresses; // by constant parts in dimensions of unknown stride
};

} // namespace kiln::lowering::gpu

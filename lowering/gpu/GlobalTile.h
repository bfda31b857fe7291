// Where a thread finds the elements of a tile in global memory: addresses, predicates, packets.
//
// A tile at offsets o of a view with strides s has, at position p, the element at byte (Σ (oᵈ + pᵈ) · sᵈ) · size from
// the view's first. A thread's p is its share plus a known number, so that an address is computed once for the tile and
// once for each distinct number in dimensions of unknown stride; the rest is a displacement in the instruction.
//
// An element is inside where low ≤ pᵈ < high in every dimension, with
//
//     low = max(0, −oᵈ)      high = min(tile's extent, view's extent − oᵈ)
//
// computed once for the tile, in 64 bits where it must be; a thread's share is subtracted from both, and the known
// parts of positions are compared with the rest in 32. Where the tile's extent is 1, o is inside as a number without
// sign that is less than the view's extent.
//
// Packets of V elements begin at multiples of V along the contiguous dimension, so `low` is a multiple of V. If the
// view may end within a packet (`simt.ragged`), `high` is rounded down to a multiple of V. A packet that begins below
// `high` is completely inside. The view ends within the packet that begins at `high`; the first elements of this
// packet, as many as the remainder of the rounding, are inside.

#pragma once

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/SimtDialect.h"

#include <map>

namespace kiln::lowering::gpu {

/// One tile in one view.
class GlobalTile {
public:
  /// Packets have one element if the access is atomic.
  GlobalTile(ThreadCode &code, tile::AccessOp access);
  /// A tile with a layout at `subscripts`: numbers where it begins in a dimension of the view, or tiles that name every
  /// position. `op` says along which dimensions all of it lies inside, in `tile.inside`.
  GlobalTile(ThreadCode &code, mlir::Operation *op, mlir::Value view, mlir::ValueRange subscripts,
             mlir::RankedTensorType tile, int64_t vector, mlir::Value mask = {});

  /// Stored indices at which packets begin, without those that no thread has in the tile.
  Indices packets() const;
  mlir::Value address(int64_t stored);
  int64_t displacement(int64_t stored) const;
  /// Whether a packet is completely inside, and `also` holds; null if this is true for all.
  mlir::Value isInside(int64_t stored, mlir::Value also = {});
  /// Whether the view ends within a packet of the tile, equal in all threads; null if it cannot.
  mlir::Value isCut() const { return cut; }
  /// Whether the view ends within this packet; positions in other dimensions are not checked.
  mlir::Value isCut(int64_t stored) const;
  /// Whether a packet is inside along all dimensions except the one in which the view may end within a packet; null if
  /// this is true for all.
  mlir::Value isBeside(int64_t stored) { return insideBut(cutAxis, stored, {}); }
  /// The largest number of elements that are inside, of a packet within which the view ends; and whether its element at
  /// `index` is inside, null if it always is.
  int64_t mostRest() const { return knownRest.value_or(vector - 1); }
  mlir::Value isInRest(int64_t index) const;
  /// The first position of a packet along the contiguous dimension, without the thread's share.
  int64_t placeOf(int64_t stored) const { return layout.positionOf(stored)[fastest()]; }
  /// The bytes of a packet along `dim` that lie inside, i32, when it need not be inside or outside as a whole.
  mlir::Value bytesInside(int64_t stored, unsigned dim);

  const simt::LayoutAttr attribute;
  const simt::TileLayout layout;
  const mlir::Type element; // as memory has it: bool is i8
  const int64_t vector;     // elements of a packet
  const int64_t bytes;      // of an element

private:
  /// What the known part of a position in one dimension must be from and below, i32: the thread's share has been
  /// subtracted. `low` is null where nothing lies below, `high` where no bound is nearer than the tile's own end. Where
  /// the tile's extent is 1, `inside` says whether its position lies in the view, and both are null.
  struct Bounds {
    mlir::Value low, high, inside;
  };
  /// Positions in one dimension of the view that are named: those that the thread holds, i64, and the view's extent.
  struct Names {
    Values positions;
    mlir::Value extent;
  };
  void findStrides(mlir::MemRefType type);
  void findBounds(mlir::MemRefType type, mlir::Operation *op);
  /// Sets `cut`, `rest` and the bound for the axis along which the view may end within a packet.
  void findCut(unsigned axis, mlir::MemRefType type);
  /// The tile's contiguous dimension, along which packets extend.
  unsigned fastest() const;
  mlir::Value insideBut(std::optional<unsigned> without, int64_t stored, mlir::Value inside);
  void findNames();
  mlir::Value isPositionInside(mlir::Value offset, mlir::Value extent);
  Bounds boundsOf(unsigned axis, mlir::Value extent);
  Bounds nearBoundsOf(unsigned axis, mlir::Value extent);
  /// Whether the distance from `offset` to the view's end is a number of 32 bits, and so is its sum with a position.
  bool isNear(mlir::Value offset) const;
  /// Looks through `effort` sums.
  mlir::Value nearOf(mlir::Value offset, int effort = 4);
  mlir::Value bytesTo(unsigned axis);
  mlir::Value strideBytes(unsigned axis);
  /// Which of the thread's names a stored value goes by.
  int64_t nameOf(int64_t stored) const;
  mlir::Value isInsideAlong(int64_t stored, unsigned axis);
  mlir::Value isWithin(int64_t stored, unsigned dim);
  bool isNamed(unsigned axis) const { return mlir::isa<mlir::RankedTensorType>(subscripts[axis].getType()); }
  /// How many positions along an axis of the view a thread's packets have.
  int64_t positionsAlong(unsigned axis) const;
  unsigned axes() const { return static_cast<unsigned>(subscripts.size()); }

  ThreadCode &code;
  const bool fits32; // what `tile.fits_32` says holds of the view
  const mlir::Value view;
  const llvm::SmallVector<mlir::Value, 4> subscripts;
  llvm::SmallVector<unsigned> dims;              // of the tile, by axes of the view that are not named
  unsigned indexRank = 0;                        // the tile's first dimensions are those of what names positions
  mlir::Value index;                             // one of these tiles
  llvm::SmallVector<int64_t> strides;            // in elements; kDynamic
  llvm::SmallVector<mlir::Value> unknownStrides; // in bytes: without sign in i32 where it fits, else i64
  llvm::SmallVector<Names> names;                // by axes
  llvm::SmallVector<Bounds> bounds;
  std::optional<unsigned> cutAxis;
  mlir::Value cut, rest; // rest: the remainder of `high` by the packet's size, i32
  std::optional<int64_t> knownRest;
  llvm::SmallVector<unsigned> byPositions; // axes, those first along which a thread has few positions
  Values mask;                             // of what the thread stores; empty without one
  mlir::Value base;
  llvm::DenseMap<std::pair<unsigned, int64_t>, mlir::Value> insides,
      withins;                              // by axis or dimension, and known part of the position
  std::map<Indices, mlir::Value> addresses; // by known parts in dimensions of unknown stride
};

} // namespace kiln::lowering::gpu

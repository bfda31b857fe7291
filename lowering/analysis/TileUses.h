// Where the elements of a tile are read, when everything that can be computed on the spot is computed on the spot.
//
// An operation is *inlinable* when any element of its result follows from a few elements of its operands: elementwise
// arithmetic and the shape operations. The *readers* of a value are the other operations that its elements reach
// through inlinable ones: stores, reductions, products, loops, yields. A lowering that computes an inlinable value
// earlier than its readers only reads memory earlier, so what holds at the readers holds there too.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering {

/// One operation that reads elements of a value.
struct Reader {
  mlir::OpOperand *operand; // the operand through which they arrive
  bool sameElement;         // element i of the value is used for element i of that operand only
};

/// Whether every element of the tile that `op` computes follows from a few elements of its operands.
bool isInlinable(mlir::Operation *op);

/// Whether `op` computes element i from element i of its operands.
bool isElementwise(mlir::Operation *op);

/// Whether the elements of a tile follow from where they lie: no memory is read for them.
bool followsFromPlace(mlir::Value tile);

/// Whether `op` takes elements by dimensions as they are: no position has to be computed from others.
bool isPlain(tile::MoveOp op);

/// The dimension of the source that dimension `axis` of the result alone runs along, if there is one.
std::optional<int64_t> axisBelow(tile::MoveOp op, int64_t axis);

/// Whether `from` and `to` hold the same extents but for extents of 1.
bool differsByUnits(mlir::Type from, mlir::Type to);

/// Readers of `value` through inlinable operations.
llvm::SmallVector<Reader> readersOf(mlir::Value value);

/// What comes after a use: the uses of what it computes, other uses only, or none at all.
enum class Walk { follow, leave, giveUp };

/// Visits the uses of `tile`, and those of the results that `visit` wants followed, each value's once. Whether none of
/// them gave up.
bool walkUses(mlir::Value tile, llvm::function_ref<Walk(mlir::OpOperand &use)> visit);

/// The stores that elements of `tile` reach, each for one element, through elementwise operations and reshapes that add
/// or drop extents of 1; none when anything else reads `tile`. In program order when they stand in one block.
llvm::SmallVector<tile::StoreOp> storesOf(mlir::Value tile);

/// The constant of the module that a view shows, memory that nobody writes; empty for an argument of the kernel.
llvm::StringRef tableOf(mlir::Value view);

/// A fact about the kernel's argument that a view is, `tile.…`; null when it is not known.
mlir::Attribute factOf(mlir::Value view, llvm::StringRef name);

/// Whether writing through `a` may change what `b` reads; both are view arguments of the kernel, or tables.
bool mayOverlap(mlir::Value a, mlir::Value b);

/// Whether `op`, or an operation inside it, writes what may be memory of `view`, or orders all memory: no access of the
/// view may change sides with it.
bool touches(mlir::Operation *op, mlir::Value view);

/// Whether `op` makes a tile of what a view holds; false of null.
bool isLoad(mlir::Operation *op);

/// Whether two accesses are of the same element at each position of their tiles.
bool isSamePlace(tile::AccessOp a, tile::AccessOp b);

} // namespace kiln::lowering

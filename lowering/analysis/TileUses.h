// Finds the operations that read the elements of a tile, if inlinable operations are fused into their users.
//
// An operation is *inlinable* if each element of its result depends on a few elements of its operands: elementwise
// arithmetic and the shape operations. The *readers* of a value are the other operations that its elements reach
// through inlinable ones: stores, reductions, products, loops, yields. A lowering may compute an inlinable value
// earlier than its readers. It then only reads memory earlier, so the facts at the readers are also valid there.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering {

/// One operation that reads elements of a value.
struct Reader {
  mlir::OpOperand *operand; // the operand that it reads
  bool sameElement;         // element i of the value is used for element i of that operand only
};

/// Whether every element of the result of `op` depends on a few elements of its operands.
bool isInlinable(mlir::Operation *op);

/// Whether `op` computes element i from element i of its operands.
bool isElementwise(mlir::Operation *op);

/// Whether the elements of a tile are computed from their positions, scalars and constants, without reading memory.
bool followsFromPlace(mlir::Value tile);

/// Whether every position of the source is one dimension of the result or a constant, without arithmetic.
bool isPlain(tile::MoveOp op);

/// The dimension of the source whose position is dimension `axis` of the result, if there is one.
std::optional<int64_t> axisBelow(tile::MoveOp op, int64_t axis);

/// Whether `from` and `to` have equal extents, except for extents of 1.
bool differsByUnits(mlir::Type from, mlir::Type to);

/// Readers of `value` through inlinable operations.
llvm::SmallVector<Reader> readersOf(mlir::Value value);

/// How a walk continues after a use: with the uses of its results, with other uses only, or not at all.
enum class Walk { follow, leave, giveUp };

/// Visits the uses of `tile`, and those of results for which `visit` returns `follow`, each value once. Returns whether
/// no visit returned `giveUp`.
bool walkUses(mlir::Value tile, llvm::function_ref<Walk(mlir::OpOperand &use)> visit);

/// The stores that the elements of `tile` reach element by element, through elementwise operations and reshapes that
/// add or drop extents of 1. Empty if anything else reads `tile`. In program order if they are in one block.
llvm::SmallVector<tile::StoreOp> storesOf(mlir::Value tile);

/// The constant of the module to which a view refers, which is read-only; empty for an argument of the kernel.
llvm::StringRef tableOf(mlir::Value view);

/// A fact (`tile.…`) about a view that is an argument of the kernel; null if it is unknown.
mlir::Attribute viewFact(mlir::Value view, llvm::StringRef name);

/// Whether a write to `a` may change a value read from `b`. Both are view arguments of the kernel, or constants.
bool mayOverlap(mlir::Value a, mlir::Value b);

/// Whether `op`, or an operation inside it, may write memory of `view`, or orders all memory. Accesses of the view must
/// then not be moved across it.
bool touches(mlir::Operation *op, mlir::Value view);

/// Whether `op` loads a tile from a view; false for null.
bool isLoad(mlir::Operation *op);

/// Whether two accesses access the same element of memory at each position of their tiles.
bool isSamePlace(tile::AccessOp a, tile::AccessOp b);

} // namespace kiln::lowering

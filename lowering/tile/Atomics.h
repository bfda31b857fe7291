// Emits an atomic access to one element on a CPU.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering {

/// The operand tiles of an atomic: the expected values of a compare-exchange, and the values to write; none for a load.
llvm::SmallVector<mlir::Value, 2> valuesOfAtomic(tile::AccessOp atomic);

/// Emits an atomic on the element of its view at `indices`, with scalars `values` in place of its operand tiles.
/// Returns the old value; null for a store. Every memory order acquires and releases, because a CPU's instructions do.
mlir::Value emitAtomic(mlir::OpBuilder &builder, mlir::Location loc, tile::AccessOp atomic, mlir::ValueRange values,
                       mlir::ValueRange indices);

/// Emits which bits of each element a read-modify-write of integers, an exchange or a compare-exchange has changed, as
/// a tile of integers. An element out of bounds counts as 0.
mlir::Value emitChangedBits(mlir::OpBuilder &builder, mlir::Location loc, tile::AccessOp atomic);

} // namespace kiln::lowering

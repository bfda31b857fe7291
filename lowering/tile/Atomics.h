// One element of an atomic access on a CPU, whichever way the tile is walked.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering {

/// The tiles whose elements an atomic takes: what it compares with, if it does, and what it writes; none of a load.
llvm::SmallVector<mlir::Value, 2> valuesOfAtomic(tile::AccessOp atomic);

/// What an atomic does to the element of its view at `indices`, with scalars in place of the tiles that it takes. What
/// was there; null of a store. Every order acquires and releases, as a CPU's instructions do.
mlir::Value emitAtomic(mlir::OpBuilder &builder, mlir::Location loc, tile::AccessOp atomic, mlir::ValueRange values,
                       mlir::ValueRange indices);

} // namespace kiln::lowering

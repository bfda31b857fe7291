// What the operations on memory share: verifiers, the assembly of subscripts, what padding is, and subscripts that name
// positions one after the other.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::tile {

mlir::LogicalResult verifyAccess(AccessOp access);

/// How soon the elements of an access are read or written again: "stream", once, or "keep", soon, by others too.
/// Without it as usual. It changes no result.
inline constexpr llvm::StringLiteral cacheName = "tile.cache";
/// Gives `to` the hint that `from` has, if any.
void copyCache(mlir::Operation *from, mlir::Operation *to);

/// The threads for which an access is atomic: "block", those of its program, or "system", those of all processors.
/// Without it those of the device.
inline constexpr llvm::StringLiteral scopeName = "tile.scope";
/// Gives `to` the scope that `from` has, if any.
void copyScope(mlir::Operation *from, mlir::Operation *to);

/// The types of subscripts, up to the last that is a tile; what follows is i64.
mlir::ParseResult parseSubscriptTypes(mlir::OpAsmParser &parser,
                                      llvm::ArrayRef<mlir::OpAsmParser::UnresolvedOperand> subscripts,
                                      llvm::SmallVectorImpl<mlir::Type> &types);
void printSubscriptTypes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange subscripts,
                         mlir::TypeRange types);

/// The subscripts of an access of the same elements by the same tile, where one that names positions which follow each
/// other along a dimension of the tile has become a number, and that dimension a block. Failure where there is none
/// such, or the tile's dimensions would have to change places.
llvm::FailureOr<llvm::SmallVector<mlir::Value>> withBlockForRun(AccessOp access, mlir::OpBuilder &builder);

} // namespace kiln::tile

// Shared by the operations on memory: verifiers, the assembly format of subscripts, cache hints and scopes, and index
// tiles with consecutive positions.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::tile {

mlir::LogicalResult verifyAccess(AccessOp access);

/// Adds the effects of an atomic. An order other than relaxed fences the whole memory. A load counts as a write, too,
/// so that two loads are not merged: other programs may change the element in between.
void addAtomicEffects(AccessOp access, mlir::OpOperand &view,
                      llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &effects);

/// The cache eviction hint of an access: "stream" for Cache::evict_first, "keep" for Cache::evict_last. Without the
/// attribute: evict_normal. It changes no result.
inline constexpr llvm::StringLiteral cacheName = "tile.cache";
/// Copies the cache hint of `from`, if any, to `to`.
void copyCache(mlir::Operation *from, mlir::Operation *to);

/// The scope of an atomic access: "block" for the threads of its program, "system" for those of all processors. Without
/// the attribute: those of the device.
inline constexpr llvm::StringLiteral scopeName = "tile.scope";
/// Copies the scope of `from`, if any, to `to`.
void copyScope(mlir::Operation *from, mlir::Operation *to);

/// The types of subscripts, up to the last one that is a tile; all later ones are i64.
mlir::ParseResult parseSubscriptTypes(mlir::OpAsmParser &parser,
                                      llvm::ArrayRef<mlir::OpAsmParser::UnresolvedOperand> subscripts,
                                      llvm::SmallVectorImpl<mlir::Type> &types);
void printSubscriptTypes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange subscripts,
                         mlir::TypeRange types);

/// Subscripts of an access and the shape of its tile.
struct BlockAccess {
  llvm::SmallVector<mlir::Value> subscripts;
  llvm::SmallVector<int64_t> shape;
};
/// An equivalent access with a block in place of an index tile: if an index tile has consecutive positions along a
/// dimension of the tile, a scalar replaces it. The shape differs from the tile's by dimensions of extent 1. Fails if
/// there is no such index tile, or if the tile's elements would have to be reordered.
llvm::FailureOr<BlockAccess> withBlockForRun(AccessOp access, mlir::OpBuilder &builder);

} // namespace kiln::tile

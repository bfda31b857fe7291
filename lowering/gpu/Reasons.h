// Why the compiler chose nothing better: what passes decided by, told to people.

#pragma once

#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// What keeps an access of memory from moving 16 bytes at a time (CoalesceAccesses.cpp); empty when it does.
std::string whyNarrow(tile::AccessOp access);

/// Elements that a copy of the load's tile may move at once, wherever the view ends: at most 16 bytes, aligned along
/// the dimension in which neighbours lie (`fastest`); and whether so many lie inside the view or outside as a whole.
/// Zero elements where neighbours do not lie together (CoalesceAccesses.cpp).
struct CopyWidth {
  int64_t elements = 0;
  unsigned fastest = 0;
  bool whole = false;
};
CopyWidth copyWidthOf(tile::LoadOp load);

/// Whether `op` loads numbers along one dimension, at most 1 KB: so few that threads rather read them again than hand
/// them to each other (CoalesceAccesses.cpp).
bool isFewNumbers(mlir::Operation *op);

/// Elements that a thread may load at once in a layout that was not chosen for memory: at most 16 bytes, which are
/// aligned and are the thread's first values (CoalesceAccesses.cpp).
int64_t packetIn(const simt::TileLayout &layout, tile::LoadOp load);

/// Whether tensor cores multiply factors of f32 as sums of two numbers, as the precision permits.
bool isSplit(tile::DotOp op);
/// The width of the numbers that they multiply: of the factors, or of bf16 that stand for f32.
unsigned multipliedBits(tile::DotOp op);

/// Why tensor cores do not compute a product (SelectInstructions.cpp); empty when they can.
std::string whyNoTensorCore(tile::DotOp op);

} // namespace kiln::lowering::gpu

// The reasons for the compiler's choices, for passes and for `--explain`.

#pragma once

#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// The reason why an access moves fewer than 16 bytes at a time (CoalesceAccesses.cpp); empty if it moves 16.
std::string whyNarrow(tile::AccessOp access);

/// The number of elements that an asynchronous copy of the load's tile may move at once: at most 16 bytes, aligned
/// along the contiguous dimension (`fastest`). `whole` means that such a group is never partly in bounds. Zero elements
/// if no dimension is contiguous (CoalesceAccesses.cpp).
struct CopyWidth {
  int64_t elements = 0;
  unsigned fastest = 0;
  bool whole = false;
};
CopyWidth copyWidthOf(tile::LoadOp load);

/// Whether `op` loads a vector of at most 1 KB. It is cheaper to load it again than to exchange it between threads
/// (CoalesceAccesses.cpp).
bool isFewNumbers(mlir::Operation *op);

/// The number of elements that a thread may load at once in a layout that was not chosen for this load: at most 16
/// bytes, aligned, and the thread's first values (CoalesceAccesses.cpp).
int64_t vectorWidthIn(const simt::TileLayout &layout, tile::LoadOp load);

/// Whether tensor cores multiply f32 operands that are split into two numbers, as the precision permits.
bool isSplit(tile::DotOp op);
/// The width in bits of the numbers that tensor cores multiply: the operands', or bf16's if f32 is split into bf16.
unsigned multipliedBits(tile::DotOp op);

/// The reason why a product does not use tensor cores (SelectInstructions.cpp); empty if it can.
std::string whyNoTensorCore(tile::DotOp op);

} // namespace kiln::lowering::gpu

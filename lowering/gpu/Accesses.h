// Properties of memory accesses and products that several passes use, and the reasons for the compiler's choices, for
// passes and for `--explain`.

#pragma once

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// The memory traffic of the access if its tile had `layout`.
simt::Traffic trafficIn(const simt::TileLayout &layout, tile::AccessOp access);

/// Records that a thread of the access moves `vector` elements at once (`simt.vector`), and whether the view may end
/// within them (`simt.ragged`).
void setVector(tile::AccessOp access, int64_t vector);
/// The recorded number of elements; 1 where none is.
int64_t getVector(tile::AccessOp access);

/// The load of a product's operand, and whether it is transposed. Between load and product there may be reshapes that
/// drop leading extents of 1, and layout conversions. Null if there are other operations (SelectInstructions.cpp).
std::pair<tile::LoadOp, bool> operandLoad(mlir::Value operand);

/// The reason why an access moves fewer than 16 bytes at a time (CoalesceAccesses.cpp); empty if it moves 16.
std::string whyNarrow(tile::AccessOp access);

/// The number of elements that an asynchronous copy of the load's tile may move at once. They have at most 16 bytes and
/// are aligned along the contiguous dimension (`fastest`). `whole` means that such a group is never partly in bounds.
/// Zero elements if no dimension is contiguous (CoalesceAccesses.cpp).
struct CopyWidth {
  int64_t elements = 0;
  unsigned fastest = 0;
  bool whole = false;
};
CopyWidth copyWidthOf(tile::LoadOp load);

/// Whether `op` loads a vector of at most 1 KB. It is cheaper to load it again than to exchange it between threads
/// (CoalesceAccesses.cpp).
bool isFewNumbers(mlir::Operation *op);

/// The number of elements that a thread may load at once in a layout that was not chosen for this load. They have at
/// most 16 bytes, are aligned, and are the thread's first values (CoalesceAccesses.cpp).
int64_t vectorWidthIn(const simt::TileLayout &layout, tile::LoadOp load);

/// Whether tensor cores multiply f32 operands that are split into two numbers, as the precision permits.
bool isSplit(tile::DotOp op);
/// The width in bits of the numbers that tensor cores multiply: the operands', or bf16's if f32 is split into bf16.
unsigned multipliedBits(tile::DotOp op);

/// The reason why a product does not use tensor cores (SelectInstructions.cpp); empty if it can.
std::string whyNoTensorCore(tile::DotOp op);

} // namespace kiln::lowering::gpu

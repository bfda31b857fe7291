// See Buffers.h.

#include "lowering/cpu/Buffers.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// The type of a tile's elements in memory.
static Type storedType(Type tile) {
  Type element = getElementTypeOrSelf(tile);
  return element.isInteger(1) ? IntegerType::get(tile.getContext(), 8) : element;
}

Value allocateDense(OpBuilder &builder, Location loc, RankedTensorType tile, Machine machine) {
  // The last vector may extend past the end.
  auto type = MemRefType::get({tile.getNumElements() + machine.lanes()}, storedType(tile));
  return memref::AllocaOp::create(builder, loc, type, builder.getI64IntegerAttr(64));
}

Value allocateBuffer(OpBuilder &builder, Location loc, Type tile, Machine machine, int64_t skew) {
  SmallVector<int64_t> shape(tile::shapeOf(tile));
  shape.back() = llvm::divideCeil(shape.back(), machine.lanes()) * machine.lanes() + skew;
  return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, storedType(tile)),
                                  builder.getI64IntegerAttr(64));
}

} // namespace kiln::lowering::cpu

// Makes the buffers of tiles, and loops over them.

#include "lowering/generic/TileBuffers.h"

#include "lowering/Abi.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace kiln::lowering::generic {

Value TileBuffers::index(Location loc, int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

Value TileBuffers::i64(Location loc, int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }

Value TileBuffers::allocate(Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  Type stored = element.isInteger(1) ? builder.getI8Type() : element;
  return memref::AllocaOp::create(builder, loc, MemRefType::get(tensor.getShape(), stored),
                                  builder.getI64IntegerAttr(abi::scratchAlignment));
}

Value TileBuffers::create(Value tile) {
  Value buffer = allocate(tile.getLoc(), tile.getType());
  bind(tile, buffer);
  return buffer;
}

Value TileBuffers::fromStored(Location loc, Type element, Value stored) {
  if (stored.getType() == element)
    return stored;
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 8);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, stored, zero);
}

Value TileBuffers::toStored(Location loc, Type stored, Value value) {
  if (value.getType() == stored)
    return value;
  return arith::ExtUIOp::create(builder, loc, stored, value);
}

Value TileBuffers::read(Location loc, Type element, Value buffer, ValueRange indices) {
  return fromStored(loc, element, memref::LoadOp::create(builder, loc, buffer, indices));
}

void TileBuffers::write(Location loc, Value value, Value buffer, ValueRange indices) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  memref::StoreOp::create(builder, loc, toStored(loc, stored, value), buffer, indices);
}

void TileBuffers::loops(Location loc, ArrayRef<int64_t> shape, function_ref<void(ValueRange)> body) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> indices;
  Value zero = index(loc, 0), one = index(loc, 1);
  for (int64_t extent : shape) {
    auto loop = scf::ForOp::create(builder, loc, zero, index(loc, extent), one);
    builder.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
  }
  body(indices);
}

void TileBuffers::generic(Location loc, ArrayRef<int64_t> shape, ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                          ValueRange outputs, function_ref<SmallVector<Value>(ValueRange)> body) {
  SmallVector<AffineMap> maps(inputMaps);
  maps.append(outputs.size(), builder.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  auto fill = [&](OpBuilder &inner, Location, ValueRange args) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
    SmallVector<Value> results = body(args.take_front(inputs.size()));
    for (auto [result, output] : llvm::zip(results, outputs))
      result = toStored(loc, cast<MemRefType>(output.getType()).getElementType(), result);
    linalg::YieldOp::create(builder, loc, results);
  };
  linalg::GenericOp::create(builder, loc, inputs, outputs, maps, iterators, fill);
}

void TileBuffers::copy(Location loc, Value from, Value to) {
  auto shape = cast<MemRefType>(from.getType()).getShape();
  AffineMap identity = builder.getMultiDimIdentityMap(shape.size());
  generic(loc, shape, from, identity, to, [](ValueRange args) { return SmallVector<Value>{args[0]}; });
}

Value TileBuffers::flat(Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t count = type.getNumElements();
  return memref::ReinterpretCastOp::create(builder, loc, MemRefType::get({count}, type.getElementType()), buffer,
                                           /*offset=*/0, /*sizes=*/ArrayRef<int64_t>{count},
                                           /*strides=*/ArrayRef<int64_t>{1});
}

} // namespace kiln::lowering::generic

// The reference backend's memory operations: one element at a time, each compared with the view's extents in 64 bits.

#include "lowering/generic/TileBuffers.h"
#include "lowering/tile/Atomics.h"
#include "lowering/tile/Console.h"

using namespace mlir;

namespace kiln::lowering::generic {

static Value paddingValue(OpBuilder &builder, Location loc, tile::Padding padding, Type element) {
  return arith::ConstantOp::create(builder, loc, tile::paddingOf(padding, element));
}

/// The position in the view, as i64, of the element at `indices` of the access's tile: an element of an index tile, or
/// begin plus index. An overflow wraps to a negative number, which is outside of every view.
static SmallVector<Value> positionsOf(TileBuffers &tiles, tile::AccessOp access, ValueRange indices) {
  OpBuilder &b = tiles.builder;
  const Location loc = access.getLoc();
  SmallVector<Value> result;
  for (auto [number, subscript] : llvm::enumerate(access.getSubscripts())) {
    const auto axis = static_cast<int64_t>(number);
    if (!access.isIndexed(axis)) {
      Value i = arith::IndexCastOp::create(b, loc, b.getI64Type(), indices[access.getBlockDim(axis)]);
      result.push_back(arith::AddIOp::create(b, loc, subscript, i));
      continue;
    }
    Type element = getElementTypeOrSelf(subscript.getType());
    Value position = tiles.read(loc, element, tiles.of(subscript), indices.take_front(access.getIndexRank()));
    result.push_back(element.isInteger(64) ? position : arith::ExtSIOp::create(b, loc, b.getI64Type(), position));
  }
  return result;
}

/// Whether the element at `indices` is inside the view, by one unsigned comparison for both bounds, and in the mask.
static Value isInside(TileBuffers &tiles, tile::AccessOp access, ValueRange indices, ValueRange positions) {
  OpBuilder &b = tiles.builder;
  const Location loc = access.getLoc();
  Value inside;
  if (Value mask = access.getMaskIfAny())
    inside = tiles.read(loc, b.getI1Type(), tiles.of(mask), indices);
  for (auto [axis, position] : llvm::enumerate(positions)) {
    Value extent = tile::createDim(b, loc, access.getView(), axis);
    Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, position, extent);
    inside = inside ? Value(arith::AndIOp::create(b, loc, inside, here)) : here;
  }
  return inside;
}

static SmallVector<Value> asIndices(TileBuffers &tiles, Location loc, ValueRange positions) {
  SmallVector<Value> result;
  for (Value position : positions)
    result.push_back(arith::IndexCastOp::create(tiles.builder, loc, tiles.builder.getIndexType(), position));
  return result;
}

/// Runs `touch` with an element's position if the element is inside the access's view and mask. If there is
/// `otherwise`, returns the value of `touch`, or `otherwise` for elements outside.
static Value touchInside(TileBuffers &tiles, tile::AccessOp access, ValueRange indices, Value otherwise,
                         function_ref<Value(ValueRange at)> touch) {
  OpBuilder &b = tiles.builder;
  const Location loc = access.getLoc();
  const SmallVector<Value> at = positionsOf(tiles, access, indices);
  Value inside = isInside(tiles, access, indices, at);
  SmallVector<Type, 1> types;
  if (otherwise)
    types.push_back(otherwise.getType());
  auto branch = scf::IfOp::create(b, loc, TypeRange(types), inside, static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value value = touch(asIndices(tiles, loc, at));
  if (!otherwise)
    return {};
  scf::YieldOp::create(b, loc, value);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  return branch.getResult(0);
}

static void lowerLoad(TileBuffers &tiles, tile::AccessOp op) {
  Location loc = op.getLoc();
  const RankedTensorType type = op.getTile().getType();
  const Type element = type.getElementType();
  Value result = tiles.create(op.getTile());
  Value padding = paddingValue(tiles.builder, loc, op.getPadding(), element);
  tiles.loops(loc, type.getShape(), [&](ValueRange indices) {
    Value value = touchInside(tiles, op, indices, padding,
                              [&](ValueRange at) { return tiles.read(loc, element, op.getView(), at); });
    tiles.write(loc, value, result, indices);
  });
}

static void lowerStore(TileBuffers &tiles, tile::AccessOp op) {
  Location loc = op.getLoc();
  const RankedTensorType type = op.getTile().getType();
  tiles.loops(loc, type.getShape(), [&](ValueRange indices) {
    Value value = tiles.read(loc, type.getElementType(), tiles.of(op.getTile()), indices);
    touchInside(tiles, op, indices, {}, [&](ValueRange at) {
      tiles.write(loc, value, op.getView(), at);
      return Value();
    });
  });
}

static void lowerAtomic(TileBuffers &tiles, tile::AccessOp op) {
  Location loc = op.getLoc();
  const RankedTensorType type = op.getTile().getType();
  const bool hasResult = op->getNumResults() == 1;
  Value result = hasResult ? tiles.create(op->getResult(0)) : Value();
  Value zero = hasResult ? paddingValue(tiles.builder, loc, tile::Padding::Zero, type.getElementType()) : Value();
  tiles.loops(loc, type.getShape(), [&](ValueRange indices) {
    SmallVector<Value, 2> values;
    for (Value tile : valuesOfAtomic(op))
      values.push_back(tiles.read(loc, type.getElementType(), tiles.of(tile), indices));
    Value before = touchInside(tiles, op, indices, zero,
                               [&](ValueRange at) { return emitAtomic(tiles.builder, loc, op, values, at); });
    if (hasResult)
      tiles.write(loc, before, result, indices);
  });
}

LogicalResult lowerAccess(TileBuffers &tiles, tile::AccessOp op) {
  if (op.isAtomic())
    return lowerAtomic(tiles, op), success();
  if (op.isLoad())
    return lowerLoad(tiles, op), success();
  if (op.isStore())
    return lowerStore(tiles, op), success();
  return failure();
}

/// Searches for the first false element, and reports it once.
void lowerCheck(TileBuffers &tiles, tile::CheckOp op) {
  Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  Value none = tiles.i64(loc, -1), first;
  if (op.getCondition().getType().isInteger(1)) {
    first = arith::SelectOp::create(b, loc, op.getCondition(), none, tiles.i64(loc, 0));
  } else {
    Value buffer = tiles.flat(loc, tiles.of(op.getCondition()));
    Value count = tiles.index(loc, cast<MemRefType>(buffer.getType()).getNumElements());
    auto loop = scf::ForOp::create(b, loc, tiles.index(loc, 0), count, tiles.index(loc, 1), ValueRange{none});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value here = loop.getInductionVar(), before = loop.getRegionIterArg(0);
    Value holds = tiles.read(loc, b.getI1Type(), buffer, here);
    Value found = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, before, none);
    Value position = arith::IndexCastOp::create(b, loc, b.getI64Type(), here);
    Value now = arith::SelectOp::create(b, loc, holds, none, position);
    Value next = arith::SelectOp::create(b, loc, found, before, now);
    scf::YieldOp::create(b, loc, next);
    first = loop.getResult(0);
  }
  Value failed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, first, none);
  auto branch = scf::IfOp::create(b, loc, failed);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitCheckFailed(b, op, first);
}

void lowerPrint(TileBuffers &tiles, tile::PrintOp op) {
  Value value = op.getValue();
  Value buffer = tiles.of(value);
  if (!buffer) { // a scalar is printed as a tile of rank 0
    auto type = RankedTensorType::get({1}, value.getType());
    buffer = tiles.allocate(op.getLoc(), type);
    tiles.write(op.getLoc(), value, buffer, tiles.index(op.getLoc(), 0));
  }
  emitPrint(tiles.builder, op, buffer);
}

} // namespace kiln::lowering::generic

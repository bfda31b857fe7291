// The oracle's memory operations: one element after another, each compared with the view's extents in 64 bits.

#include "lowering/generic/TileBuffers.h"
#include "lowering/tile/Console.h"

using namespace mlir;

namespace kiln::lowering::generic {

/// What an index outside a view reads.
static Value paddingValue(OpBuilder &builder, Location loc, tile::Padding padding, Type element) {
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(element, 0));
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  auto value = [&] {
    switch (padding) {
    case tile::Padding::Zero:
      return APFloat::getZero(semantics);
    case tile::Padding::NegZero:
      return APFloat::getZero(semantics, /*Negative=*/true);
    case tile::Padding::Inf:
      return APFloat::getInf(semantics);
    case tile::Padding::NegInf:
      return APFloat::getInf(semantics, /*Negative=*/true);
    case tile::Padding::NaN:
      break;
    }
    return APFloat::getNaN(semantics);
  };
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value()));
}

/// Where in the view element `indices` of the access's tile lies, as i64: what the subscripts name, or begin plus
/// index. An overflow wraps to a negative number, which lies outside every view.
static SmallVector<Value> positionsOf(TileBuffers &tiles, tile::AccessOp access, ValueRange indices) {
  OpBuilder &b = tiles.builder;
  const Location loc = access.getLoc();
  SmallVector<Value> result;
  for (auto [subscript, index] : llvm::zip_equal(access.getSubscripts(), indices)) {
    if (!isa<RankedTensorType>(subscript.getType())) {
      Value i = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
      result.push_back(arith::AddIOp::create(b, loc, subscript, i));
      continue;
    }
    Type element = getElementTypeOrSelf(subscript.getType());
    Value named = tiles.read(loc, element, tiles.of(subscript), index);
    result.push_back(element.isInteger(64) ? named : arith::ExtSIOp::create(b, loc, b.getI64Type(), named));
  }
  return result;
}

/// Whether an element lies inside the view; unsigned comparison covers both sides.
static Value isInside(TileBuffers &tiles, Location loc, Value view, ValueRange positions) {
  OpBuilder &b = tiles.builder;
  Value inside;
  for (auto [axis, position] : llvm::enumerate(positions)) {
    Value extent = tile::DimOp::create(b, loc, view, axis);
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

/// The element of a view, or `padding` outside it.
static Value readView(TileBuffers &tiles, Location loc, Type element, Value view, ValueRange at, Value padding) {
  auto inside = [&](OpBuilder &, Location) {
    Value value = tiles.read(loc, element, view, asIndices(tiles, loc, at));
    scf::YieldOp::create(tiles.builder, loc, value);
  };
  OpBuilder &b = tiles.builder;
  auto branch = scf::IfOp::create(b, loc, TypeRange{element}, isInside(tiles, loc, view, at), true, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  inside(b, loc);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, padding);
  return branch.getResult(0);
}

static void writeView(TileBuffers &tiles, Location loc, Value value, Value view, ValueRange at) {
  OpBuilder &b = tiles.builder;
  auto branch = scf::IfOp::create(b, loc, isInside(tiles, loc, view, at));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  tiles.write(loc, value, view, asIndices(tiles, loc, at));
}

static void lowerLoad(TileBuffers &tiles, tile::AccessOp op) {
  Location loc = op.getLoc();
  const RankedTensorType type = op.getTile().getType();
  Value result = tiles.create(op.getTile());
  Value padding = paddingValue(tiles.builder, loc, op.getPadding(), type.getElementType());
  tiles.loops(loc, type.getShape(), [&](ValueRange indices) {
    auto at = positionsOf(tiles, op, indices);
    tiles.write(loc, readView(tiles, loc, type.getElementType(), op.getView(), at, padding), result, indices);
  });
}

static void lowerStore(TileBuffers &tiles, tile::AccessOp op) {
  Location loc = op.getLoc();
  const RankedTensorType type = op.getTile().getType();
  tiles.loops(loc, type.getShape(), [&](ValueRange indices) {
    Value value = tiles.read(loc, type.getElementType(), tiles.of(op.getTile()), indices);
    writeView(tiles, loc, value, op.getView(), positionsOf(tiles, op, indices));
  });
}

/// `memref.atomic_rmw` orders as acquire and release, which is enough for every order.
static void lowerAtomicAdd(TileBuffers &tiles, tile::AtomicAddOp op) {
  Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  Value result = tiles.create(op.getResult());
  Value zero = paddingValue(b, loc, tile::Padding::Zero, element);
  auto kind = isa<FloatType>(element) ? arith::AtomicRMWKind::addf : arith::AtomicRMWKind::addi;
  tiles.loops(loc, tile::shapeOf(type), [&](ValueRange indices) {
    Value value = tiles.read(loc, element, tiles.of(op.getValue()), indices);
    auto at = positionsOf(tiles, op, indices);
    auto branch = scf::IfOp::create(b, loc, TypeRange{element}, isInside(tiles, loc, op.getView(), at), true, true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value old = memref::AtomicRMWOp::create(b, loc, kind, value, op.getView(), asIndices(tiles, loc, at));
      scf::YieldOp::create(b, loc, old);
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, loc, zero);
    }
    tiles.write(loc, branch.getResult(0), result, indices);
  });
}

LogicalResult lowerAccess(TileBuffers &tiles, tile::AccessOp op) {
  if (auto add = dyn_cast<tile::AtomicAddOp>(*op))
    return lowerAtomicAdd(tiles, add), success();
  if (op.isLoad())
    return lowerLoad(tiles, op), success();
  if (op.isStore())
    return lowerStore(tiles, op), success();
  return failure();
}

/// Looks for the first false element, then reports it once.
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
  if (!buffer) { // a scalar: prints as a tile of rank 0
    auto type = RankedTensorType::get({1}, value.getType());
    buffer = tiles.allocate(op.getLoc(), type);
    tiles.write(op.getLoc(), value, buffer, tiles.index(op.getLoc(), 0));
  }
  emitPrint(tiles.builder, op, buffer);
}

} // namespace kiln::lowering::generic

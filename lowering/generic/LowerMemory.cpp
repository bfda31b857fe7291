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

/// Offset plus index in every dimension, as i64. An overflow wraps to a negative number, which lies outside every view.
static SmallVector<Value> positions(TileBuffers &tiles, Location loc, ValueRange offsets, ValueRange indices) {
  OpBuilder &b = tiles.builder;
  SmallVector<Value> result;
  for (auto [offset, index] : llvm::zip_equal(offsets, indices)) {
    Value i = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
    result.push_back(arith::AddIOp::create(b, loc, offset, i));
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

void lowerLoad(TileBuffers &tiles, tile::LoadOp op) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(op.getType());
  Value result = tiles.create(op.getResult());
  Value padding = paddingValue(tiles.builder, loc, op.getPadding(), element);
  tiles.loops(loc, tile::shapeOf(op.getType()), [&](ValueRange indices) {
    auto at = positions(tiles, loc, op.getOffsets(), indices);
    tiles.write(loc, readView(tiles, loc, element, op.getView(), at, padding), result, indices);
  });
}

void lowerStore(TileBuffers &tiles, tile::StoreOp op) {
  Location loc = op.getLoc();
  Type type = op.getValue().getType();
  tiles.loops(loc, tile::shapeOf(type), [&](ValueRange indices) {
    Value value = tiles.read(loc, getElementTypeOrSelf(type), tiles.of(op.getValue()), indices);
    writeView(tiles, loc, value, op.getView(), positions(tiles, loc, op.getOffsets(), indices));
  });
}

/// Where element `indices` of a gathered or scattered tile lies: its row comes from the index tile.
static SmallVector<Value> rowPositions(TileBuffers &tiles, Location loc, Value rows, ValueRange offsets,
                                       ValueRange indices) {
  OpBuilder &b = tiles.builder;
  Type element = getElementTypeOrSelf(rows.getType());
  Value row = tiles.read(loc, element, tiles.of(rows), indices.take_front());
  if (!element.isInteger(64))
    row = arith::ExtSIOp::create(b, loc, b.getI64Type(), row);
  SmallVector<Value> result = positions(tiles, loc, offsets, indices.drop_front());
  result.insert(result.begin(), row);
  return result;
}

void lowerGather(TileBuffers &tiles, tile::GatherOp op) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(op.getType());
  Value result = tiles.create(op.getResult());
  Value padding = paddingValue(tiles.builder, loc, op.getPadding(), element);
  tiles.loops(loc, tile::shapeOf(op.getType()), [&](ValueRange indices) {
    auto at = rowPositions(tiles, loc, op.getRows(), op.getOffsets(), indices);
    tiles.write(loc, readView(tiles, loc, element, op.getView(), at, padding), result, indices);
  });
}

void lowerScatter(TileBuffers &tiles, tile::ScatterOp op) {
  Location loc = op.getLoc();
  Type type = op.getValue().getType();
  tiles.loops(loc, tile::shapeOf(type), [&](ValueRange indices) {
    Value value = tiles.read(loc, getElementTypeOrSelf(type), tiles.of(op.getValue()), indices);
    writeView(tiles, loc, value, op.getView(), rowPositions(tiles, loc, op.getRows(), op.getOffsets(), indices));
  });
}

/// `memref.atomic_rmw` orders as acquire and release, which is enough for every order.
void lowerAtomicAdd(TileBuffers &tiles, tile::AtomicAddOp op) {
  Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  Value result = tiles.create(op.getResult());
  Value zero = paddingValue(b, loc, tile::Padding::Zero, element);
  auto kind = isa<FloatType>(element) ? arith::AtomicRMWKind::addf : arith::AtomicRMWKind::addi;
  tiles.loops(loc, tile::shapeOf(type), [&](ValueRange indices) {
    Value value = tiles.read(loc, element, tiles.of(op.getValue()), indices);
    auto at = positions(tiles, loc, op.getOffsets(), indices);
    auto branch = scf::IfOp::create(b, loc, TypeRange{element}, isInside(tiles, loc, op.getView(), at), true, true);
    b.setInsertionPointToStart(branch.thenBlock());
    Value old = memref::AtomicRMWOp::create(b, loc, kind, value, op.getView(), asIndices(tiles, loc, at));
    scf::YieldOp::create(b, loc, old);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, zero);
    b.setInsertionPointAfter(branch);
    tiles.write(loc, branch.getResult(0), result, indices);
  });
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

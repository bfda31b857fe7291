// Reads and writes scratch buffers and views at an index. Views are checked against both bounds, in 64 bits. A bound
// that holds for every position of the tile needs no code.

#include "lowering/analysis/Integers.h"
#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/Lanes.h"
#include "lowering/tile/Atomics.h"

using namespace mlir;

namespace kiln::lowering::cpu {

bool isNonNegative(Value value, int effort) { return lowering::isNonNegative(rangeOf(value, effort)); }

Value Evaluator::extentOf(Value view, int64_t axis) {
  moveTo(0);
  const Value extent = tile::createDim(builder, loc, view, axis);
  APInt known;
  return matchPattern(extent, m_ConstantInt(&known)) ? constantIndex(known.getSExtValue()) : asIndex(extent);
}

static bool isUnitStride(Value view, int64_t axis) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(view.getType());
  return succeeded(type.getStridesAndOffset(strides, offset)) && strides[axis] == 1;
}

static bool hasLanes(const Index &index) {
  return llvm::any_of(index, [](const Ix &ix) { return ix.lanes; });
}

/// An offset at which every tile is outside of every view. At smaller offsets a tile's last position does not overflow.
static constexpr int64_t farthest = int64_t(1) << 61;

/// A position in a tile as the sum of a value (null: none) and a constant.
static std::pair<Value, int64_t> splitConstant(Value position) {
  APInt constant;
  if (matchPattern(position, m_ConstantInt(&constant)))
    return {Value(), constant.getSExtValue()};
  if (auto sum = position.getDefiningOp<arith::AddIOp>(); sum && matchPattern(sum.getRhs(), m_ConstantInt(&constant)))
    return {sum.getLhs(), constant.getSExtValue()};
  return {position, 0};
}

/// Whether `extent` positions from `offset` on are always inside along `axis` of a view of `type`.
static bool alwaysInside(MemRefType type, int64_t axis, Value offset, int64_t extent) {
  APInt begin;
  return matchPattern(offset, m_ConstantInt(&begin)) && !type.isDynamicDim(axis) && begin.isNonNegative() &&
         begin.sle(type.getDimSize(axis) - extent);
}

/// Lower bounds of the numbers of elements of a row of `extent`: before a position, and from it on. 0 and 0 if unknown.
static std::pair<int64_t, int64_t> blockAround(const Ix &position, int64_t extent) {
  const Congruence known = congruenceOf(position.at);
  const int64_t block = known.modulus == 0 ? extent : known.modulus;
  if (extent % block != 0 || known.residue < 0 || known.residue >= block)
    return {0, 0};
  return {known.residue, block - known.residue};
}

Value Evaluator::both(Value a, Value b) { return a && b ? make<arith::AndIOp>(a, b) : a ? a : b; }

/// Whether bounds along `axis` are checked once before a nest. For the positions of a gather, this is done only if each
/// of them is the position of a block of several elements.
static bool asksAhead(tile::AccessOp access, int64_t axis) {
  return !access.isIndexed(axis) || (access.getIndexRank() == 1 && access.getTile().getType().getRank() > 1);
}

Value Evaluator::liesInside(tile::AccessOp access) {
  const Value view = access.getView();
  const auto extents = access.getTile().getType().getShape();
  Value holds;
  for (auto [number, subscript] : llvm::enumerate(access.getSubscripts())) {
    const auto axis = static_cast<int64_t>(number);
    if (!asksAhead(access, axis))
      continue;
    if (access.isIndexed(axis)) {
      Value limit = extentOf(view, axis), yes = make<arith::ConstantOp>(builder.getBoolAttr(true));
      auto isBelow = [&, rows = subscript](Ix row, ValueRange all) -> SmallVector<Value> {
        Value position = asIndex(at(rows, {row}));
        return {make<arith::AndIOp>(all[0], make<arith::CmpIOp>(arith::CmpIPredicate::ult, position, limit))};
      };
      holds = both(holds, loop(constantIndex(0), constantIndex(extents[0]), 1, yes, isBelow).front());
      continue;
    }
    const int64_t extent = extents[access.getBlockDim(axis)];
    if (alwaysInside(access.getView().getType(), axis, subscript, extent))
      continue;
    Value start = asIndex(subscript), limit = extentOf(view, axis);
    Value last = make<arith::SubIOp>(limit, constantIndex(extent)); // start + extent could overflow
    holds = both(holds, make<arith::CmpIOp>(arith::CmpIPredicate::sle, start, last));
    if (!isNonNegative(subscript))
      holds = both(holds, make<arith::CmpIOp>(arith::CmpIPredicate::sge, start, constantIndex(0)));
  }
  return holds;
}

void Evaluator::takeInside(tile::AccessOp access) {
  for (int64_t axis = 0; axis < access.getView().getType().getRank(); ++axis)
    if (asksAhead(access, axis))
      inside[{access, axis}] = depth();
}

Evaluator::Access Evaluator::accessOf(tile::AccessOp op, const Index &index) {
  return accessOf(op, op.getSubscripts(), index);
}

Evaluator::Access Evaluator::accessOf(tile::AccessOp op, ValueRange subscripts, const Index &index) {
  const Value view = op.getView();
  const auto extents = op.getTile().getType().getShape();
  Access access;
  auto type = op.getView().getType();
  struct Bounds {
    Value limit, begins, start;
    bool canBeNegative = false;
  };
  SmallVector<Bounds, 2> bounds; // of the dimensions along the lanes; null: always inside
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    const bool isIndexed = op.isIndexed(axis);
    const int64_t dim = isIndexed ? -1 : op.getBlockDim(axis);
    Value offset = isIndexed ? Value() : subscripts[axis];
    APInt constant;
    bool isConstant = offset && matchPattern(offset, m_ConstantInt(&constant));
    const int64_t begin = isConstant ? std::clamp(constant.getSExtValue(), -farthest, farthest) : 0;
    bool always = offset && alwaysInside(type, axis, offset, extents[dim]);
    if (auto known = inside.find({op, axis}); known != inside.end()) {
      always = true;
      access.depth = std::max(access.depth, known->second);
    }
    Value position;
    if (isIndexed)
      position = indexedPosition(op, axis, index);
    else if (isConstant && begin == 0)
      position = index[dim].at;
    else
      position = make<arith::AddIOp>(isConstant ? constantIndex(begin) : asIndex(offset), index[dim].at);
    access.indices.push_back(position);
    access.depth = std::max(access.depth, depthOf(position));
    if (!isIndexed)
      access.depth = std::max(access.depth, index[dim].depth);
    if (!isIndexed && index[dim].lanes) {
      access.along.push_back({axis, index[dim]});
      bounds.emplace_back();
      if (always && isUnitStride(view, axis))
        std::tie(access.before, access.after) = blockAround(index[dim], extents[dim]);
      if (!always)
        bounds.back() = {extentOf(view, axis), isConstant ? constantIndex(begin) : asIndex(offset), position,
                         !isNonNegative(offset)};
      continue;
    }
    if (always)
      continue;
    Value inside = make<arith::CmpIOp>(arith::CmpIPredicate::ult, position, extentOf(view, axis));
    access.inside = both(access.inside, inside);
    if (hasLanes(index)) // all lanes masked off; but a masked load from an unmapped page still takes 150 ns
      access.indices.back() = make<arith::SelectOp>(inside, position, constantIndex(0));
  }
  Value mask = op.getMaskIfAny() ? at(op.getMaskIfAny(), index) : Value();
  if (mask && matchPattern(mask, m_One()))
    mask = {};
  if (mask && !isa<VectorType>(mask.getType()))
    access.inside = both(access.inside, std::exchange(mask, Value()));
  access.contiguous =
      access.along.size() == 1 && isUnitStride(view, access.along[0].first) && !access.along[0].second.steps;
  if (access.contiguous) {
    access.mask = mask;
    boundLanes(access, bounds[0].limit, bounds[0].begins, bounds[0].canBeNegative, access.along[0].second);
  } else if (!bounds.empty()) {
    access.whole = mask ? both(access.inside, allTrue(mask, access.valid())) : access.inside;
    for (auto [bound, entry] : llvm::zip(bounds, access.along))
      boundWhole(access, bound.limit, bound.start, bound.canBeNegative, entry.second);
  }
  for (Value bound : {access.inside, access.mask, access.whole})
    if (bound)
      access.depth = std::max(access.depth, depthOf(bound));
  return access;
}

/// Compares each lane's number, counted from `first`, with n, an i32.
Value Evaluator::compareLanes(arith::CmpIPredicate predicate, Value n, int64_t first) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < machine.lanes(); ++lane)
    numbers.push_back(builder.getI32IntegerAttr(first + lane));
  Value lane = make<arith::ConstantOp>(DenseElementsAttr::get(vectorOf(builder.getI32Type()), numbers));
  return make<arith::CmpIOp>(predicate, lane, asVector(n));
}

/// n, an index, clamped to an i32 between 0 and more than any position in a tile.
Value Evaluator::asCount(Value n) {
  n = make<arith::MaxSIOp>(make<arith::MinSIOp>(n, constantIndex(int64_t(1) << 30)), constantIndex(0));
  return make<arith::IndexCastOp>(builder.getI32Type(), n);
}

Value Evaluator::lanesBelow(Value n) { return compareLanes(arith::CmpIPredicate::slt, asCount(n)); }

/// Adds the mask of the lanes inside the view, with as few operations as the facts allow. The number of elements inside
/// is computed outside of the loops over the tile. The loop's position is subtracted from it, and the difference is
/// compared with lane numbers. In an unrolled body these continue from vector to vector.
void Evaluator::boundLanes(Access &access, Value limit, Value begins, bool canBeNegative, const Ix &position) {
  auto also = [&](Value mask) { access.mask = both(access.mask, mask); };
  auto [base, first] = splitConstant(position.at);
  auto compare = [&, base = base, first = first](arith::CmpIPredicate predicate, Value count) {
    if (base)
      count = make<arith::SubIOp>(count, make<arith::IndexCastOp>(builder.getI32Type(), base));
    also(compareLanes(predicate, count, first));
  };
  if (limit) {
    compare(arith::CmpIPredicate::slt, asCount(make<arith::SubIOp>(limit, begins)));
    if (canBeNegative)
      compare(arith::CmpIPredicate::sge, asCount(make<arith::SubIOp>(constantIndex(0), begins)));
  }
  if (access.inside)
    also(asVector(access.inside));
  if (position.valid < machine.lanes())
    also(compareLanes(arith::CmpIPredicate::slt, make<arith::ConstantOp>(builder.getI32IntegerAttr(position.valid))));
}

/// Whether all valid lanes are inside.
void Evaluator::boundWhole(Access &access, Value limit, Value start, bool canBeNegative, const Ix &position) {
  auto also = [&](Value holds) { access.whole = both(access.whole, holds); };
  if (!limit)
    return;
  int64_t farthestLane = 0;
  for (int64_t lane = 0; lane < position.valid; ++lane)
    farthestLane = std::max(farthestLane, position.stepOf(lane));
  Value end = make<arith::SubIOp>(limit, constantIndex(farthestLane)); // start + … could overflow
  also(make<arith::CmpIOp>(arith::CmpIPredicate::slt, start, end));
  if (canBeNegative)
    also(make<arith::CmpIOp>(arith::CmpIPredicate::sge, start, constantIndex(0)));
}

Value Evaluator::paddingOf(Type element, tile::Padding padding) {
  return make<arith::ConstantOp>(tile::paddingOf(padding, element));
}

/// A loaded value as an element of a tile: a nonzero byte is true.
Value Evaluator::asElement(Value stored, Type element) {
  if (getElementTypeOrSelf(stored.getType()) == element)
    return stored;
  Value zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(stored.getType())));
  return make<arith::CmpIOp>(arith::CmpIPredicate::ne, stored, zero);
}

Value Evaluator::read(Value view, const Access &access, Type element, tile::Padding padding, bool lanes) {
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  if (lanes) {
    if (!access.mask) {
      moveTo(access.depth);
      return asElement(
          noted(vector::LoadOp::create(builder, loc, vectorOf(stored), view, access.indices), access.depth), element);
    }
    Value pad = asVector(paddingOf(stored, padding));
    moveTo(access.depth);
    Value value = vector::MaskedLoadOp::create(builder, loc, vectorOf(stored), view, access.indices, access.mask, pad);
    return asElement(noted(value, access.depth), element);
  }
  if (!access.inside) {
    moveTo(access.depth);
    return asElement(noted(memref::LoadOp::create(builder, loc, view, access.indices), access.depth), element);
  }
  Value pad = paddingOf(stored, padding);
  moveTo(access.depth);
  auto branch = scf::IfOp::create(
      builder, loc, access.inside,
      [&](OpBuilder &b, Location l) {
        scf::YieldOp::create(b, l, memref::LoadOp::create(b, l, view, access.indices).getResult());
      },
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, pad); });
  return asElement(noted(branch.getResult(0), access.depth), element);
}

Value Evaluator::readVector(Value view, Type element, tile::Padding padding, const Index &index,
                            function_ref<Access(const Index &)> access) {
  const Access here = access(index);
  if (here.contiguous || !hasLanes(index))
    return read(view, here, element, padding, hasLanes(index));
  auto byLanes = [&](const Index &deeper) {
    return laneByLane(deeper, element,
                      [&](const Index &position) { return read(view, access(position), element, padding, false); });
  };
  return eitherWay(
      here.depth, here.whole, vectorOf(element), index, [&] { return asElement(readApart(view, here), element); },
      byLanes);
}

Value Evaluator::load(tile::AccessOp op, const Index &index) {
  if (isAnywhere(op, index))
    return loadAnywhere(op, index);
  const Type element = op.getTile().getType().getElementType();
  auto access = [&](const Index &position) { return accessOf(op, position); };
  return readVector(op.getView(), element, op.getPadding(), index, access);
}

Evaluator::Access Evaluator::accessIn(Value buffer, const Index &index) {
  Access access;
  for (auto [axis, ix] : llvm::enumerate(index)) {
    access.indices.push_back(ix.at);
    access.depth = std::max(access.depth, ix.depth);
    if (ix.lanes)
      access.along.push_back({axis, ix});
  }
  access.contiguous =
      access.along.size() == 1 && isUnitStride(buffer, access.along[0].first) && !access.along[0].second.steps;
  return access;
}

Value Evaluator::readBuffer(Value buffer, Type element, const Index &index) {
  return readVector(buffer, element, tile::Padding::Zero, index, [&](const Index &at) { return accessIn(buffer, at); });
}

void Evaluator::storeBuffer(Value value, Value buffer, const Index &index) {
  writeVector(value, buffer, index, [&](const Index &at) { return accessIn(buffer, at); });
}

void Evaluator::place(Value value, Value tile, Value buffer, const Index &index) {
  if (!isDense(tile))
    return storeBuffer(value, buffer, index);
  const Ix inRow = inOrder(index, tile::shapeOf(tile.getType()));
  writeVector(value, buffer, {inRow}, [&](const Index &at) {
    Access access = accessIn(buffer, at);
    if (inRow.lanes && inRow.valid < machine.lanes()) // the next row follows immediately
      access.mask =
          compareLanes(arith::CmpIPredicate::slt, make<arith::ConstantOp>(builder.getI32IntegerAttr(inRow.valid)));
    return access;
  });
}

void Evaluator::write(Value value, Value view, const Access &access, const Index &index) {
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  bool lanes = hasLanes(index);
  if (lanes)
    value = asVector(value);
  else if (isa<VectorType>(value.getType())) // one lane of the tile
    value = make<vector::ExtractOp>(value, int64_t(0));
  if (getElementTypeOrSelf(value.getType()) != stored)
    value = make<arith::ExtUIOp>(lanes ? Type(vectorOf(stored)) : stored, value);
  moveTo(depth());
  if (lanes && access.mask)
    vector::MaskedStoreOp::create(builder, loc, view, access.indices, access.mask, value);
  else if (lanes)
    vector::StoreOp::create(builder, loc, value, view, access.indices);
  else if (!access.inside)
    memref::StoreOp::create(builder, loc, value, view, access.indices);
  else
    scf::IfOp::create(builder, loc, access.inside, [&](OpBuilder &b, Location l) {
      memref::StoreOp::create(b, l, value, view, access.indices);
      scf::YieldOp::create(b, l);
    });
}

void Evaluator::writeVector(Value value, Value view, const Index &index, function_ref<Access(const Index &)> access) {
  const Access here = access(index);
  if (here.contiguous || !hasLanes(index))
    return write(value, view, here, index);
  value = asVector(value);
  auto together = [&] {
    writeApart(value, view, here);
    return Value();
  };
  auto byLanes = [&](const Index &deeper) {
    writeLanes(value, view, deeper, access);
    return Value();
  };
  eitherWay(depth(), here.whole, {}, index, together, byLanes);
}

void Evaluator::writeLanes(Value value, Value view, const Index &index, function_ref<Access(const Index &)> access) {
  value = asVector(value);
  const Ix lanes = *llvm::find_if(index, [](const Ix &ix) { return ix.lanes; });
  loop(constantIndex(0), constantIndex(lanes.valid), 1, [&](Ix lane) {
    moveTo(depth());
    Value element = noted(vector::ExtractOp::create(builder, loc, value, OpFoldResult(lane.at)), depth());
    forLane(index, lane.at, [&](const Index &position) { write(element, view, access(position), position); });
  });
}

void Evaluator::store(Value value, tile::AccessOp op, const Index &index) {
  if (isAnywhere(op, index))
    return storeAnywhere(value, op, index);
  writeVector(value, op.getView(), index, [&](const Index &position) { return accessOf(op, position); });
}

void Evaluator::prefetch(tile::AccessOp op, ValueRange begins, const Index &index) {
  Access access = accessOf(op, begins, index);
  moveTo(depth());
  memref::PrefetchOp::create(builder, loc, op.getView(), access.indices, /*isWrite=*/op.writesView(),
                             /*localityHint=*/op.writesView() ? 3 : 2, /*isDataCache=*/true);
}

Value Evaluator::atomic(ValueRange values, tile::AccessOp op, const Index &index) {
  const Access access = accessOf(op, index);
  const bool hasResult = op->getNumResults() == 1;
  const Type element = op.getTile().getType().getElementType();
  auto change = [&](OpBuilder &b, Location l) { return emitAtomic(b, l, op, values, access.indices); };
  Value zero = paddingOf(element, tile::Padding::Zero);
  moveTo(depth());
  if (!access.inside) {
    Value before = change(builder, loc);
    return before ? noted(before, depth()) : before;
  }
  auto yield = [&](OpBuilder &b, Location l, Value value) {
    scf::YieldOp::create(b, l, hasResult ? ValueRange(value) : ValueRange());
  };
  auto branch = scf::IfOp::create(builder, loc, hasResult ? TypeRange(element) : TypeRange(), access.inside,
                                  /*addThenBlock=*/true, /*addElseBlock=*/hasResult);
  auto then = OpBuilder::atBlockBegin(branch.thenBlock());
  yield(then, loc, change(then, loc));
  if (!hasResult)
    return {};
  auto otherwise = OpBuilder::atBlockBegin(branch.elseBlock());
  yield(otherwise, loc, zero);
  return noted(branch.getResult(0), depth());
}

} // namespace kiln::lowering::cpu

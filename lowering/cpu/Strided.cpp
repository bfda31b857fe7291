// Reading and writing a vector of lanes that lie apart in memory: along a dimension whose stride is not 1.
//
// Where all lanes lie in the view, which is asked once for a vector, they are read by whole vectors and shuffles when
// the stride is known, or else one by one without a question each: that takes half the time of the gathers of a Zen 5.
// At a view's edges each lane is asked for by itself.

#include "lowering/cpu/Evaluator.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// The stride of a dimension, or ShapedType::kDynamic.
static int64_t staticStride(Value view, int64_t axis) {
  return cast<MemRefType>(view.getType()).getStridesAndOffset().first[axis];
}

Value Evaluator::eitherWay(int where, Value condition, Type result, const Index &index, function_ref<Value()> then,
                           function_ref<Value(const Index &)> otherwise) {
  SmallVector<Level> saved(levels);
  levels.resize(where + 1);
  if (!condition) {
    Value value = then();
    levels = saved;
    return value;
  }
  moveTo(where);
  auto choice = scf::IfOp::create(builder, loc, result ? TypeRange(result) : TypeRange(), condition, true);
  auto side = [&](Block *block, function_ref<Value()> body) {
    levels.back().before = choice;
    levels.push_back({block, block->empty() ? nullptr : block->getTerminator()});
    Value value = body();
    moveTo(depth());
    if (value)
      scf::YieldOp::create(builder, loc, value);
    levels.pop_back();
    forgetWithin(choice);
  };
  side(choice.thenBlock(), then);
  side(choice.elseBlock(), [&] {
    Index deeper(index);
    for (Ix &ix : deeper)
      ix.depth = depth(); // what is computed there stays there
    return otherwise(deeper);
  });
  levels = saved;
  return result ? noted(choice.getResult(0), where) : Value();
}

// --- The line: memory from the first lane on ------------------------------------------------------------------------

Value Evaluator::strideAlong(Value view, int64_t axis) {
  const int64_t stride = staticStride(view, axis);
  if (ShapedType::isStatic(stride))
    return constantIndex(stride);
  moveTo(0);
  return memref::ExtractStridedMetadataOp::create(builder, loc, view).getStrides()[axis];
}

Value Evaluator::lineAt(Value view, const Access &access) {
  Value first = constantIndex(0);
  for (auto [axis, position] : llvm::enumerate(access.indices))
    first = make<arith::AddIOp>(first, make<arith::MulIOp>(position, strideAlong(view, axis)));
  moveTo(0);
  Value memory = memref::ExtractStridedMetadataOp::create(builder, loc, view).getBaseBuffer();
  const int64_t dynamic = ShapedType::kDynamic;
  auto type = MemRefType::get({dynamic}, cast<MemRefType>(view.getType()).getElementType(),
                              StridedLayoutAttr::get(builder.getContext(), dynamic, {1}));
  const int where = depthOf(first);
  const OpFoldResult one = builder.getIndexAttr(1); // nobody asks for the extent
  moveTo(where);
  return noted(memref::ReinterpretCastOp::create(builder, loc, type, memory, OpFoldResult(first), {one}, {one}), where);
}

Value Evaluator::placeInLine(Value view, const Access &access, int64_t lane) {
  const int64_t stride = staticStride(view, access.axis);
  if (ShapedType::isStatic(stride))
    return constantIndex(lane * stride);
  return make<arith::MulIOp>(strideAlong(view, access.axis), constantIndex(lane));
}

// --- Reading --------------------------------------------------------------------------------------------------------

/// A vector of the line from `begin` on, of which `needed` elements can be read; the others are 0.
Value Evaluator::readPart(Value line, int64_t begin, int64_t needed) {
  VectorType type = vectorOf(cast<MemRefType>(line.getType()).getElementType());
  Value at = constantIndex(begin);
  if (needed >= machine.lanes()) {
    moveTo(depth());
    return vector::LoadOp::create(builder, loc, type, line, at);
  }
  Value mask = lanesBelow(constantIndex(needed)),
        zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(type)));
  moveTo(depth());
  return vector::MaskedLoadOp::create(builder, loc, type, line, at, mask, zero);
}

/// Of memory that ends with the last valid lane, vectors side by side; the last one lies over the one before it where
/// that memory is no multiple of them.
Value Evaluator::readWide(Value line, int64_t stride, int64_t valid) {
  const int64_t lanes = machine.lanes(), needed = (valid - 1) * stride + 1, parts = llvm::divideCeil(needed, lanes);
  Type stored = cast<MemRefType>(line.getType()).getElementType();
  Value zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(vectorOf(stored))));
  Value result = zero;
  SmallVector<int64_t> order(lanes);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = std::max<int64_t>(0, std::min(part * lanes, needed - lanes));
    Value elements = readPart(line, begin, needed);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t element = lane * stride - begin;
      const bool isHere = lane < valid && lane * stride >= part * lanes && lane * stride < (part + 1) * lanes;
      order[lane] = isHere ? lanes + element : lane;
    }
    moveTo(depth());
    result = vector::ShuffleOp::create(builder, loc, result, elements, order);
  }
  return noted(result, depth());
}

Value Evaluator::readApart(Value view, const Access &access, int64_t valid) {
  const int64_t stride = staticStride(view, access.axis);
  Value line = lineAt(view, access);
  if (ShapedType::isStatic(stride) && stride > 0 && stride <= widestStride)
    return readWide(line, stride, valid);
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  Value zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(stored)));
  SmallVector<Value> elements(machine.lanes(), zero), places;
  for (int64_t lane = 0; lane < valid; ++lane)
    places.push_back(placeInLine(view, access, lane));
  moveTo(depth());
  for (auto [element, place] : llvm::zip(elements, places))
    element = memref::LoadOp::create(builder, loc, line, place);
  return noted(vector::FromElementsOp::create(builder, loc, vectorOf(stored), elements), depth());
}

// --- Writing --------------------------------------------------------------------------------------------------------

void Evaluator::writeApart(Value value, Value view, const Access &access, int64_t valid) {
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  if (getElementTypeOrSelf(value.getType()) != stored)
    value = make<arith::ExtUIOp>(vectorOf(stored), value);
  Value line = lineAt(view, access);
  for (int64_t lane = 0; lane < valid; ++lane) {
    Value place = placeInLine(view, access, lane);
    moveTo(depth());
    Value element = vector::ExtractOp::create(builder, loc, value, lane);
    memref::StoreOp::create(builder, loc, element, line, place);
  }
}

} // namespace kiln::lowering::cpu

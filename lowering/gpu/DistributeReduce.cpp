// A reduction within warps: first the values of one thread, by halves, then those of lanes, by shuffles.
//
// What is combined stands in vectors, a lane of which belongs to one place of the result. A step of lanes exchanges
// with the lane that differs in one bit, so that afterwards both have the same. Positions that the layout pads the axis
// with count as the kind's neutral element.

#include "lowering/gpu/ThreadCode.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::Hw;
using simt::LayoutAttr;
using simt::TileLayout;

namespace {

/// Elements, and for argmax where they are: vectors of one length.
struct Candidates {
  Value value, index;
};

class Reducer {
public:
  Reducer(ThreadCode &code, simt::ReduceOp op)
      : code(code), op(op), kind(op.getKind()), attribute(simt::layoutOf(op.getSources()[0])),
        layout(attribute.getLayout()), axis(static_cast<unsigned>(op.getAxis())) {}

  void lower() {
    SmallVector<Candidates> parts = partsOfThread();
    while (parts.size() > 1) { // by halves
      SmallVector<Candidates> next;
      for (size_t i = 0; i + 1 < parts.size(); i += 2)
        next.push_back(combine(parts[i], parts[i + 1]));
      if (parts.size() % 2)
        next.push_back(parts.back());
      parts = std::move(next);
    }
    Candidates result = parts[0];
    for (const simt::AxisBit &bit : layout.axisBits(axis))
      if (bit.part == Hw::lane)
        result = combine(result, {exchange(result.value, 1 << bit.index), exchange(result.index, 1 << bit.index)});
    code.set(op.getResults()[0], result.value);
    if (result.index)
      code.set(op.getResults()[1], result.index);
  }

private:
  SmallVector<Candidates> partsOfThread();
  Candidates combine(Candidates a, Candidates b);
  Value combine(Value a, Value b);
  Value exchange(Value vector, int64_t mask);

  ThreadCode &code;
  simt::ReduceOp op;
  const tile::ReduceKind kind;
  const LayoutAttr attribute;
  const TileLayout layout;
  const unsigned axis;
};

/// What no other element is worse than. Of floats the largest and smallest ignore NaN, and it is what is left of none.
TypedAttr neutralOf(tile::ReduceKind kind, Type element) {
  Builder builder(element.getContext());
  if (kind == tile::ReduceKind::Sum)
    return builder.getZeroAttr(element);
  if (auto type = dyn_cast<FloatType>(element))
    return builder.getFloatAttr(type, APFloat::getNaN(type.getFloatSemantics()));
  const unsigned width = element.getIntOrFloatBitWidth();
  return builder.getIntegerAttr(element, kind == tile::ReduceKind::Min ? APInt::getSignedMaxValue(width)
                                                                       : APInt::getSignedMinValue(width));
}

/// For each of a thread's positions along the axis, in their order, the vector of what stands there.
SmallVector<Candidates> Reducer::partsOfThread() {
  const TileLayout result = simt::layoutOf(op.getResults()[0]).getLayout();
  const Type element = cast<RankedTensorType>(op.getSources()[0].getType()).getElementType();
  Candidates all;
  all.value = code.paddedWith(neutralOf(kind, element), code.held(op.getSources()[0]), attribute, axis);
  if (kind == tile::ReduceKind::ArgMax)
    all.index = code.paddedWith(neutralOf(tile::ReduceKind::Min, code.builder.getI32Type()),
                                code.held(op.getSources()[1]), attribute, axis);

  SmallVector<int64_t> steps;
  for (int64_t stored = 0; stored < layout.numStored(); ++stored)
    if (const int64_t at = layout.positionOf(stored)[axis]; !llvm::is_contained(steps, at))
      steps.push_back(at);
  llvm::sort(steps);
  SmallVector<Candidates> parts;
  for (const int64_t step : steps) {
    Indices indices;
    for (int64_t stored = 0; stored < result.numStored(); ++stored) {
      SmallVector<int64_t> position = result.positionOf(stored);
      position[axis] = step;
      indices.push_back(*layout.storedAt(position));
    }
    parts.push_back({code.pick(all.value, indices), all.index ? code.pick(all.index, indices) : Value()});
  }
  return parts;
}

Value Reducer::combine(Value a, Value b) {
  const bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  switch (kind) {
  case tile::ReduceKind::Sum:
    return isFloat ? code.make<arith::AddFOp>(a, b) : code.make<arith::AddIOp>(a, b);
  case tile::ReduceKind::Max:
    return isFloat ? code.make<arith::MaxNumFOp>(a, b) : code.make<arith::MaxSIOp>(a, b);
  case tile::ReduceKind::Min:
    return isFloat ? code.make<arith::MinNumFOp>(a, b) : code.make<arith::MinSIOp>(a, b);
  case tile::ReduceKind::ArgMax:
    break;
  }
  llvm_unreachable("argmax combines pairs");
}

Candidates Reducer::combine(Candidates a, Candidates b) {
  if (kind != tile::ReduceKind::ArgMax)
    return {combine(a.value, b.value), Value()};
  const auto either = [&](Value x, Value y) { return code.make<arith::OrIOp>(x, y); };
  const Value isLower = code.make<arith::CmpIOp>(arith::CmpIPredicate::slt, b.index, a.index);
  Value takes;
  if (isa<FloatType>(getElementTypeOrSelf(a.value.getType()))) {
    const auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
      return code.make<arith::CmpFOp>(predicate, x, y);
    };
    const Value aIsNone = compare(arith::CmpFPredicate::UNO, a.value, a.value),
                bIsNone = compare(arith::CmpFPredicate::UNO, b.value, b.value);
    const Value isGreater =
        either(compare(arith::CmpFPredicate::OGT, b.value, a.value),
               code.make<arith::AndIOp>(aIsNone, compare(arith::CmpFPredicate::ORD, b.value, b.value)));
    const Value isEqual =
        either(compare(arith::CmpFPredicate::OEQ, a.value, b.value), code.make<arith::AndIOp>(aIsNone, bIsNone));
    takes = either(isGreater, code.make<arith::AndIOp>(isEqual, isLower));
  } else {
    const auto compare = [&](arith::CmpIPredicate predicate) {
      return code.make<arith::CmpIOp>(predicate, b.value, a.value);
    };
    takes = either(compare(arith::CmpIPredicate::sgt),
                   code.make<arith::AndIOp>(compare(arith::CmpIPredicate::eq), isLower));
  }
  return {code.make<arith::SelectOp>(takes, b.value, a.value), code.make<arith::SelectOp>(takes, b.index, a.index)};
}

/// What the lane that differs in the bits of `mask` has, 32 bits at a time.
Value Reducer::exchange(Value vector, int64_t mask) {
  if (!vector)
    return {};
  const auto type = cast<VectorType>(vector.getType());
  const Type element = type.getElementType(), word = code.builder.getI32Type();
  const unsigned bits = element.getIntOrFloatBitWidth();
  const auto shuffle = [&](Value value) {
    return code.make<simt::ShuffleOp>(word, value, code.builder.getI32IntegerAttr(static_cast<int32_t>(mask)));
  };
  Values results;
  auto parts = vector::ToElementsOp::create(code.builder, code.loc, vector);
  for (Value part : parts.getResults()) {
    Value result;
    if (bits == 64) {
      const Value pair = code.make<vector::BitCastOp>(
          VectorType::get({2}, word), code.make<vector::BroadcastOp>(VectorType::get({1}, element), part));
      auto words = vector::ToElementsOp::create(code.builder, code.loc, pair);
      const Value both = code.make<vector::FromElementsOp>(
          VectorType::get({2}, word), ValueRange{shuffle(words.getResult(0)), shuffle(words.getResult(1))});
      result = code.make<vector::ExtractOp>(code.make<vector::BitCastOp>(VectorType::get({1}, element), both), 0);
    } else {
      const Type narrow = code.builder.getIntegerType(bits);
      Value integer = element.isInteger() ? part : code.make<arith::BitcastOp>(narrow, part);
      integer = shuffle(bits < 32 ? code.make<arith::ExtUIOp>(word, integer) : integer);
      integer = bits < 32 ? code.make<arith::TruncIOp>(narrow, integer) : integer;
      result = element.isInteger() ? integer : code.make<arith::BitcastOp>(element, integer);
    }
    results.push_back(result);
  }
  return code.make<vector::FromElementsOp>(type, results);
}

} // namespace

void distributeReduce(ThreadCode &code, simt::ReduceOp op) { Reducer(code, op).lower(); }

} // namespace kiln::lowering::gpu

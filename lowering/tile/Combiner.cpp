// Combines values by a kind of reduction or by a function.

#include "lowering/tile/Combiner.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace kiln::lowering {

IntegerType Combiner::keyType() const {
  return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
}

SmallVector<TypedAttr, 2> Combiner::neutral() const {
  Builder b(element.getContext());
  const unsigned width = element.getIntOrFloatBitWidth();
  const auto integer = [&](const APInt &value) { return b.getIntegerAttr(keyType(), value); };
  if (hasIndex())
    return {integer(APInt::getSignedMinValue(width)), b.getI32IntegerAttr(INT32_MAX)};
  if (auto real = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = real.getFloatSemantics();
    // NaN is neutral: the other operand is returned, and NaN only if all are NaN.
    const APFloat nan = APFloat::getNaN(semantics);
    if (kind == tile::ReduceKind::Sum)
      return {b.getFloatAttr(real, APFloat::getZero(semantics, /*Negative=*/true))};
    return {b.getFloatAttr(real, kind == tile::ReduceKind::Product ? APFloat::getOne(semantics) : nan)};
  }
  switch (kind) {
  case tile::ReduceKind::Sum:
  case tile::ReduceKind::Or:
  case tile::ReduceKind::Xor:
    return {integer(APInt(width, 0))};
  case tile::ReduceKind::Product:
    return {integer(APInt(width, 1))};
  case tile::ReduceKind::And:
    return {integer(APInt::getAllOnes(width))};
  case tile::ReduceKind::Min:
    return {integer(width == 1 ? APInt(1, 1) : APInt::getSignedMaxValue(width))};
  case tile::ReduceKind::Max:
  case tile::ReduceKind::ArgMax:
    break;
  }
  return {integer(width == 1 ? APInt(1, 0) : APInt::getSignedMinValue(width))};
}

/// Integers with the order of the elements: −0 equals +0, and NaN is below −∞.
Value Combiner::keyOf(Emit &emit, Value elements) const {
  if (!isa<FloatType>(element))
    return elements;
  const Value unsignedZeros = emit.make<arith::AddFOp>(elements, emit.real(elements.getType(), 0.0));
  const Value bits = emit.bits(unsignedZeros, keyType());
  const unsigned width = keyType().getWidth();
  const int64_t greatest = APInt::getSignedMaxValue(width).getSExtValue();
  const Value sign = emit.make<arith::ShRSIOp>(bits, emit.integer(bits.getType(), width - 1));
  const Value flip = emit.make<arith::AndIOp>(sign, emit.integer(bits.getType(), greatest));
  const Value key = emit.make<arith::XOrIOp>(bits, flip);
  const Value isNaN = emit.compare(arith::CmpFPredicate::UNO, elements, elements);
  return emit.select(isNaN, emit.integer(bits.getType(), APInt::getSignedMinValue(width).getSExtValue()), key);
}

Combiner::State Combiner::begin(Emit &emit, Value elements, Value index) const {
  return hasIndex() ? State{keyOf(emit, elements), index} : State{elements};
}

Value Combiner::pick(Emit &emit, Value a, Value b) const {
  const bool real = isa<FloatType>(element);
  if (element.isInteger(1) && kind == tile::ReduceKind::Min) // signed i1: true is below false
    return emit.make<arith::AndIOp>(a, b);
  if (element.isInteger(1) && kind == tile::ReduceKind::Max)
    return emit.make<arith::OrIOp>(a, b);
  switch (kind) {
  case tile::ReduceKind::Sum:
    return real ? emit.make<arith::AddFOp>(a, b) : emit.make<arith::AddIOp>(a, b);
  case tile::ReduceKind::Product:
    return real ? emit.make<arith::MulFOp>(a, b) : emit.make<arith::MulIOp>(a, b);
  case tile::ReduceKind::And:
    return emit.make<arith::AndIOp>(a, b);
  case tile::ReduceKind::Or:
    return emit.make<arith::OrIOp>(a, b);
  case tile::ReduceKind::Xor:
    return emit.make<arith::XOrIOp>(a, b);
  case tile::ReduceKind::Min:
    return real ? emit.make<arith::MinNumFOp>(a, b) : emit.make<arith::MinSIOp>(a, b);
  case tile::ReduceKind::Max:
  case tile::ReduceKind::ArgMax:
    break;
  }
  return real ? emit.make<arith::MaxNumFOp>(a, b) : emit.make<arith::MaxSIOp>(a, b);
}

/// Clones the function's operations on values of the states' shape.
Combiner::State Combiner::call(Emit &emit, const State &a, const State &b, function_ref<Value(Value)> outside) const {
  IRMapping values;
  for (const auto [argument, value] : llvm::zip_equal(function->getArguments(), llvm::concat<const Value>(a, b)))
    values.map(argument, value);
  const Type like = a[0].getType();
  const auto inside = [&](Value value) {
    if (const Value known = values.lookupOrNull(value))
      return known;
    const Value spread = emit.spread(outside ? outside(value) : value, typeLike(like, value.getType()));
    values.map(value, spread);
    return spread;
  };
  for (Operation &op : function->without_terminator()) {
    const auto operands = llvm::map_to_vector(op.getOperands(), inside);
    const auto types = llvm::map_to_vector(op.getResultTypes(), [&](Type type) { return typeLike(like, type); });
    values.map(op.getResults(), emit.again(op, operands, types)->getResults());
  }
  return llvm::map_to_vector<2>(function->getTerminator()->getOperands(), inside);
}

Combiner::State Combiner::combine(Emit &emit, const State &a, const State &b,
                                  function_ref<Value(Value)> outside) const {
  if (function)
    return call(emit, a, b, outside);
  if (!hasIndex())
    return {pick(emit, a[0], b[0])};
  const Value greater = emit.compare(arith::CmpIPredicate::sgt, b[0], a[0]);
  const Value equal = emit.compare(arith::CmpIPredicate::eq, b[0], a[0]);
  const Value lower = emit.compare(arith::CmpIPredicate::slt, b[1], a[1]);
  const Value takes = emit.make<arith::OrIOp>(greater, emit.make<arith::AndIOp>(equal, lower));
  return {emit.select(takes, b[0], a[0]), emit.select(takes, b[1], a[1])};
}

} // namespace kiln::lowering

// See Reduction.h.

#include "lowering/cpu/Reduction.h"

#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::lowering::cpu {

static IntegerType keyType(Type element) {
  unsigned width = std::max(32u, element.getIntOrFloatBitWidth());
  return IntegerType::get(element.getContext(), width);
}

Type Reduction::accumulated() const {
  if (kind == tile::ReduceKind::ArgMax)
    return keyType(element);
  return tile::isNarrowFloat(element) ? Type(Float32Type::get(element.getContext())) : element;
}

static TypedAttr neutralOf(tile::ReduceKind kind, Type type) {
  Builder b(type.getContext());
  if (kind == tile::ReduceKind::Sum)
    return cast<TypedAttr>(b.getZeroAttr(type));
  bool isMax = kind != tile::ReduceKind::Min;
  if (auto real = dyn_cast<FloatType>(type)) // NaN: the other operand wins, and all-NaN stays NaN
    return b.getFloatAttr(real, APFloat::getNaN(real.getFloatSemantics()));
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return b.getIntegerAttr(type, isMax ? 0 : 1);
  return b.getIntegerAttr(type, isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
}

Reduction::State Reduction::neutral() {
  State state{e.asVector(e.make<arith::ConstantOp>(neutralOf(kind, accumulated())))};
  if (kind == tile::ReduceKind::ArgMax)
    state.push_back(e.asVector(e.make<arith::ConstantOp>(e.builder.getI32IntegerAttr(INT32_MAX))));
  return state;
}

Value Reduction::pick(Value a, Value b) {
  Type type = getElementTypeOrSelf(a.getType());
  bool real = isa<FloatType>(type);
  switch (kind) {
  case tile::ReduceKind::Sum:
    return real ? e.make<arith::AddFOp>(a, b) : e.make<arith::AddIOp>(a, b);
  case tile::ReduceKind::Min:
    if (type.isInteger(1))
      return e.make<arith::AndIOp>(a, b);
    return real ? e.make<arith::MinNumFOp>(a, b) : e.make<arith::MinSIOp>(a, b);
  case tile::ReduceKind::Max:
  case tile::ReduceKind::ArgMax:
    if (type.isInteger(1))
      return e.make<arith::OrIOp>(a, b);
    return real ? e.make<arith::MaxNumFOp>(a, b) : e.make<arith::MaxSIOp>(a, b);
  }
  llvm_unreachable("a reduction of another kind");
}

/// Integers that order as the elements do: −0 as +0, NaN below −∞.
Value Reduction::keyOf(Value elements) {
  IntegerType type = keyType(element);
  VectorType keys = e.vectorOf(type);
  if (element.isInteger(1))
    return e.make<arith::ExtUIOp>(keys, elements);
  if (!isa<FloatType>(element))
    return element == type ? elements : e.make<arith::ExtSIOp>(keys, elements);
  if (tile::isNarrowFloat(element))
    elements = e.make<arith::ExtFOp>(e.vectorOf(e.builder.getF32Type()), elements);
  Type real = getElementTypeOrSelf(elements.getType());
  Value zero = e.asVector(e.make<arith::ConstantOp>(e.builder.getFloatAttr(real, 0.0)));
  Value sum = e.make<arith::AddFOp>(elements, zero);
  Value bits = e.make<arith::BitcastOp>(keys, sum);
  auto constant = [&](const APInt &value) {
    return e.asVector(e.make<arith::ConstantOp>(e.builder.getIntegerAttr(type, value)));
  };
  unsigned width = type.getWidth();
  Value sign = e.make<arith::ShRSIOp>(bits, constant(APInt(width, width - 1)));
  Value flip = e.make<arith::AndIOp>(sign, constant(APInt::getSignedMaxValue(width)));
  Value key = e.make<arith::XOrIOp>(bits, flip);
  Value isNaN = e.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, elements, elements);
  return e.make<arith::SelectOp>(isNaN, constant(APInt::getSignedMinValue(width)), key);
}

Reduction::State Reduction::combine(const State &a, const State &b) {
  if (kind != tile::ReduceKind::ArgMax)
    return {pick(a[0], b[0])};
  Value greater = e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, b[0], a[0]);
  Value equal = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, b[0], a[0]);
  Value lower = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, b[1], a[1]);
  Value take = e.make<arith::OrIOp>(greater, e.make<arith::AndIOp>(equal, lower));
  return {e.make<arith::SelectOp>(take, b[0], a[0]), e.make<arith::SelectOp>(take, b[1], a[1])};
}

static Value laneNumbers(Evaluator &e, Type type) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < e.machine.lanes(); ++lane)
    numbers.push_back(e.builder.getIntegerAttr(type, lane));
  return e.make<arith::ConstantOp>(DenseElementsAttr::get(e.vectorOf(type), numbers));
}

Reduction::State Reduction::add(const State &state, Value elements, Value position, bool step, int64_t valid) {
  elements = e.asVector(elements);
  State next{elements};
  if (kind == tile::ReduceKind::ArgMax) {
    Value first = e.asVector(e.make<arith::IndexCastOp>(e.builder.getI32Type(), position));
    if (step)
      first = e.make<arith::AddIOp>(first, laneNumbers(e, e.builder.getI32Type()));
    next = {keyOf(elements), first};
  } else if (accumulated() != element) {
    next = {e.make<arith::ExtFOp>(e.vectorOf(accumulated()), elements)};
  }
  if (step && valid < e.machine.lanes()) {
    Value bound = e.asVector(e.make<arith::ConstantOp>(e.builder.getI32IntegerAttr(valid)));
    Value inside = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, laneNumbers(e, e.builder.getI32Type()), bound);
    State none = neutral();
    for (auto [value, other] : llvm::zip(next, none))
      value = e.make<arith::SelectOp>(inside, value, other);
  }
  return combine(state, next);
}

Value Reduction::lanes(const State &state) {
  if (kind == tile::ReduceKind::ArgMax)
    return state[1];
  if (accumulated() == element)
    return state[0];
  Type type = isa<VectorType>(state[0].getType()) ? Type(e.vectorOf(element)) : element;
  return e.make<arith::TruncFOp>(type, state[0]);
}

Value Reduction::acrossLanes(State state) {
  if (element.isInteger(1) && kind != tile::ReduceKind::ArgMax && kind != tile::ReduceKind::Sum) { // one instruction
    auto together = kind == tile::ReduceKind::Min ? vector::CombiningKind::AND : vector::CombiningKind::OR;
    return e.make<vector::ReductionOp>(together, state[0]);
  }
  for (int64_t half = e.machine.lanes() / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < e.machine.lanes(); ++lane)
      order.push_back((lane + half) % e.machine.lanes());
    State upper;
    for (Value value : state)
      upper.push_back(e.make<vector::ShuffleOp>(value, value, order));
    state = combine(state, upper);
  }
  for (Value &value : state)
    value = e.make<vector::ExtractOp>(value, int64_t(0));
  return lanes(state);
}

/// The same tree for all at once: of two states that are `half` apart, the lanes that are `half` apart meet in one
/// vector.
Value Reduction::acrossLanesOfAll(SmallVector<Value> states) {
  const auto count = static_cast<int64_t>(states.size());
  for (int64_t half = count / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> lower, upper;
    for (int64_t lane = 0; lane < count; ++lane) {
      lower.push_back((lane & half ? count : 0) + (lane & ~half));
      upper.push_back((lane & half ? count : 0) + (lane | half));
    }
    for (int64_t i = 0; i < half; ++i)
      states[i] = pick(e.make<vector::ShuffleOp>(states[i], states[i + half], lower),
                       e.make<vector::ShuffleOp>(states[i], states[i + half], upper));
  }
  return lanes({states[0]});
}

} // namespace kiln::lowering::cpu

// Elementwise verbs: arithmetic, comparisons, bits, math functions, selection and casts.

#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kiln {

/// Which element types a verb takes; anything else is an error with the hint to cast.
enum class Takes { numbers, integers, floats, bits };

static bool accepts(Takes takes, Type type) {
  switch (takes) {
  case Takes::numbers:
    return type != boolean;
  case Takes::integers:
    return isInteger(type);
  case Takes::floats:
    return isFloat(type);
  case Takes::bits:
    return !isFloat(type);
  }
  return false;
}

static const char *nameOf(Takes takes) {
  static constexpr const char *names[] = {"numbers", "integers", "floats", "integers or booleans"};
  return names[static_cast<int>(takes)];
}

static Operands unifyAs(Verb &verb, Takes takes, ArrayRef<const At *> operands) {
  Operands result = unify(verb, operands);
  if (!result || accepts(takes, result.type))
    return result;
  verb.expected() << nameOf(takes) << ", but got " << nameOf(result.type) << "; use cast()";
  return {};
}

/// Emits an operation of the dialect that says whether integers have a sign, or one for which that does not matter.
template <class Op> static mlir::Value emitIntegers(Verb &verb, const Operands &operands) {
  auto op = verb.emit<Op>(operands.values[0], operands.values[1]);
  if constexpr (std::is_same_v<Op, tile::DivOp> || std::is_same_v<Op, tile::RemOp> || std::is_same_v<Op, tile::ShrOp>)
    tile::setUnsigned(op, isUnsigned(operands.type));
  return op;
}

/// A verb on two operands: `Real` on floats, `Integer` on integers, `Natural` on those without a sign.
template <class Real, class Integer, class Natural = Integer>
static Tile binary(const char *name, Takes takes, const At &a, const At &b) {
  Verb verb(name, a.loc);
  Operands operands = unifyAs(verb, takes, {&a, &b});
  if (!operands)
    return verb.poison();
  if (isFloat(operands.type))
    return verb.result(verb.emit<Real>(operands.values[0], operands.values[1]));
  return verb.result(isUnsigned(operands.type) ? emitIntegers<Natural>(verb, operands)
                                               : emitIntegers<Integer>(verb, operands));
}

template <class Integer> static Tile binary(const char *name, Takes takes, const At &a, const At &b) {
  Verb verb(name, a.loc);
  Operands operands = unifyAs(verb, takes, {&a, &b});
  return operands ? verb.result(emitIntegers<Integer>(verb, operands)) : verb.poison();
}

Tile operator+(At a, At b) { return binary<arith::AddFOp, arith::AddIOp>("+", Takes::numbers, a, b); }
Tile operator-(At a, At b) { return binary<arith::SubFOp, arith::SubIOp>("-", Takes::numbers, a, b); }
Tile operator*(At a, At b) { return binary<arith::MulFOp, arith::MulIOp>("*", Takes::numbers, a, b); }
Tile operator/(At a, At b) { return binary<arith::DivFOp, tile::DivOp>("/", Takes::numbers, a, b); }
Tile operator%(At a, At b) { return binary<arith::RemFOp, tile::RemOp>("%", Takes::numbers, a, b); }
Tile operator&(At a, At b) { return binary<arith::AndIOp>("&", Takes::bits, a, b); }
Tile operator|(At a, At b) { return binary<arith::OrIOp>("|", Takes::bits, a, b); }
Tile operator^(At a, At b) { return binary<arith::XOrIOp>("^", Takes::bits, a, b); }
Tile operator<<(At a, At b) { return binary<tile::ShlOp>("<<", Takes::integers, a, b); }
Tile operator>>(At a, At b) { return binary<tile::ShrOp>(">>", Takes::integers, a, b); }
Tile min(At a, At b) { return binary<arith::MinNumFOp, arith::MinSIOp, arith::MinUIOp>("min", Takes::numbers, a, b); }
Tile max(At a, At b) { return binary<arith::MaxNumFOp, arith::MaxSIOp, arith::MaxUIOp>("max", Takes::numbers, a, b); }

Tile operator-(At a) {
  Verb verb("-", a.loc);
  Operands operands = unifyAs(verb, Takes::numbers, {&a});
  if (!operands)
    return verb.poison();
  if (isFloat(operands.type))
    return verb.result(verb.emit<arith::NegFOp>(operands.values[0]));
  mlir::Value zero = verb.constant({}, operands.type, operands.shape);
  return verb.result(verb.emit<arith::SubIOp>(zero, operands.values[0]));
}

/// Every bit the other way round.
static Tile complement(Verb &verb, Takes takes, const At &a) {
  Operands operands = unifyAs(verb, takes, {&a});
  if (!operands)
    return verb.poison();
  mlir::Value ones = verb.constant(Literal::allOnes(operands.type), operands.type, operands.shape);
  return verb.result(verb.emit<arith::XOrIOp>(operands.values[0], ones));
}

Tile operator~(At a) {
  Verb verb("~", a.loc);
  return complement(verb, Takes::bits, a);
}

Tile operator!(const Tile &a) {
  Verb verb("!", Tracer::declaredAt(a));
  mlir::Value value = verb.value(At(a, verb.loc));
  if (value && elementOf(value) != boolean) {
    verb.expected() << "boolean, but got " << describe(value) << "; compare it with 0";
    return verb.poison();
  }
  return value ? complement(verb, Takes::bits, At(a, verb.loc)) : verb.poison();
}

// --- Comparisons -----------------------------------------------------------------------------------------------------

static Tile compare(const char *name, const At &a, const At &b, arith::CmpFPredicate real, arith::CmpIPredicate integer,
                    arith::CmpIPredicate natural) {
  Verb verb(name, a.loc);
  Operands operands = unify(verb, {&a, &b});
  if (!operands)
    return verb.poison();
  if (isFloat(operands.type))
    return verb.result(verb.emit<arith::CmpFOp>(real, operands.values[0], operands.values[1]));
  auto predicate = isInteger(operands.type) && !isUnsigned(operands.type) ? integer : natural; // a signed true is -1
  return verb.result(verb.emit<arith::CmpIOp>(predicate, operands.values[0], operands.values[1]));
}

using F = arith::CmpFPredicate;
using I = arith::CmpIPredicate;
Tile operator==(At a, At b) { return compare("==", a, b, F::OEQ, I::eq, I::eq); }
Tile operator!=(At a, At b) { return compare("!=", a, b, F::UNE, I::ne, I::ne); }
Tile operator<(At a, At b) { return compare("<", a, b, F::OLT, I::slt, I::ult); }
Tile operator<=(At a, At b) { return compare("<=", a, b, F::OLE, I::sle, I::ule); }
Tile operator>(At a, At b) { return compare(">", a, b, F::OGT, I::sgt, I::ugt); }
Tile operator>=(At a, At b) { return compare(">=", a, b, F::OGE, I::sge, I::uge); }

// --- Functions -------------------------------------------------------------------------------------------------------

/// Writes down what a function's result may be off by, where that is more than usual.
static mlir::Value permit(mlir::Value result, Accuracy accuracy) {
  tile::setAccuracy(result.getDefiningOp(), static_cast<tile::Accuracy>(accuracy));
  return result;
}

template <class Op> static Tile unary(const char *name, const At &x, Accuracy accuracy = Accuracy::full) {
  static_assert(static_cast<int>(Accuracy::fast) == static_cast<int>(tile::Accuracy::Fast));
  Verb verb(name, x.loc);
  At operand = x;
  if (auto number = Tracer::literalOf(x))
    operand = At(number->asReal(), x.loc);
  Operands operands = unifyAs(verb, Takes::floats, {&operand});
  return operands ? verb.result(permit(verb.emit<Op>(operands.values[0]), accuracy)) : verb.poison();
}

template <class Op> static Tile binaryOfFloats(const char *name, const At &a, const At &b) {
  Verb verb(name, a.loc);
  Operands operands = unifyAs(verb, Takes::floats, {&a, &b});
  return operands ? verb.result(verb.emit<Op>(operands.values[0], operands.values[1])) : verb.poison();
}

/// A rounding function: integers are their own result.
template <class Op> static Tile rounding(const char *name, const At &x) {
  Verb verb(name, x.loc);
  Operands operands = unifyAs(verb, Takes::numbers, {&x});
  if (!operands)
    return verb.poison();
  return verb.result(isFloat(operands.type) ? verb.emit<Op>(operands.values[0]).getResult() : operands.values[0]);
}

Tile sqrt(At x) { return unary<math::SqrtOp>("sqrt", x); }
#define KILN_FUNCTION(name, operation, ...)                                                                            \
  Tile name(At x) { return unary<math::operation>(#name, x); }
#define KILN_FAST_FUNCTION(name, operation, ...)                                                                       \
  Tile name(At x, Accuracy accuracy) { return unary<math::operation>(#name, x, accuracy); }
#define KILN_FUNCTION_OF_TWO(name, operation, ...)                                                                     \
  Tile name(At a, At b) { return binaryOfFloats<math::operation>(#name, a, b); }
#include "dialect/tile/Functions.def"

Tile divide(At a, At b, Accuracy accuracy) {
  Verb verb("divide", a.loc);
  Operands operands = unifyAs(verb, Takes::floats, {&a, &b});
  return operands ? verb.result(permit(verb.emit<arith::DivFOp>(operands.values[0], operands.values[1]), accuracy))
                  : verb.poison();
}

Tile round(At x) { return rounding<math::RoundEvenOp>("round", x); }
Tile trunc(At x) { return rounding<math::TruncOp>("trunc", x); }
Tile floor(At x) { return rounding<math::FloorOp>("floor", x); }
Tile ceil(At x) { return rounding<math::CeilOp>("ceil", x); }

Tile copysign(At x, At sign) { return binaryOfFloats<math::CopySignOp>("copysign", x, sign); }

Tile abs(At x) {
  Verb verb("abs", x.loc);
  Operands operands = unifyAs(verb, Takes::numbers, {&x});
  if (!operands)
    return verb.poison();
  if (isUnsigned(operands.type))
    return verb.result(operands.values[0]);
  if (isFloat(operands.type))
    return verb.result(verb.emit<math::AbsFOp>(operands.values[0]));
  return verb.result(verb.emit<math::AbsIOp>(operands.values[0]));
}

Tile fma(At a, At b, At c) {
  Verb verb("fma", a.loc);
  Operands operands = unifyAs(verb, Takes::numbers, {&a, &b, &c});
  if (!operands)
    return verb.poison();
  auto &v = operands.values;
  if (isFloat(operands.type))
    return verb.result(verb.emit<math::FmaOp>(v[0], v[1], v[2]));
  return verb.result(verb.emit<arith::AddIOp>(verb.emit<arith::MulIOp>(v[0], v[1]), v[2]));
}

Tile clamp(At x, At low, At high) {
  Verb verb("clamp", x.loc);
  Operands operands = unifyAs(verb, Takes::numbers, {&x, &low, &high});
  if (!operands)
    return verb.poison();
  auto &v = operands.values;
  if (isFloat(operands.type))
    return verb.result(verb.emit<arith::MinNumFOp>(verb.emit<arith::MaxNumFOp>(v[0], v[1]), v[2]));
  if (isUnsigned(operands.type))
    return verb.result(verb.emit<arith::MinUIOp>(verb.emit<arith::MaxUIOp>(v[0], v[1]), v[2]));
  return verb.result(verb.emit<arith::MinSIOp>(verb.emit<arith::MaxSIOp>(v[0], v[1]), v[2]));
}

Tile where(At condition, At a, At b) {
  Verb verb("where", condition.loc);
  mlir::Value chosen = verb.value(condition);
  if (chosen && elementOf(chosen) != boolean) {
    verb.expected() << "a boolean condition, but got " << describe(chosen);
    chosen = {};
  }
  Operands operands = unify(verb, {&a, &b});
  if (!chosen || !operands)
    return verb.poison();
  auto shape = broadcastShape(shapeOf(chosen), operands.shape);
  if (!shape) {
    verb.expected() << "shapes that broadcast, but got a condition of shape " << textOf(shapeOf(chosen))
                    << " and values of shape " << textOf(operands.shape);
    return verb.poison();
  }
  return verb.result(verb.emit<arith::SelectOp>(verb.broadcast(chosen, *shape),
                                                verb.broadcast(operands.values[0], *shape),
                                                verb.broadcast(operands.values[1], *shape)));
}

Tile cast(At x, Type type) {
  Verb verb("cast", x.loc);
  mlir::Value value = verb.value(x);
  return value ? verb.result(verb.cast(value, type)) : verb.poison();
}

Tile bitcast(At x, Type type) {
  Verb verb("bitcast", x.loc);
  mlir::Value value = verb.value(x);
  if (!value)
    return verb.poison();
  const Type from = elementOf(value);
  if (from == boolean || type == boolean || bytesOf(from) != bytesOf(type)) {
    verb.expected() << "a type of " << bytesOf(from) << (bytesOf(from) == 1 ? " byte" : " bytes")
                    << " that is not boolean for " << describe(value) << ", but got " << nameOf(type);
    return verb.poison();
  }
  if (isInteger(from) && isInteger(type))
    return verb.result(verb.cast(value, type));
  if (from == type)
    return verb.result(value);
  return verb.result(
      verb.of(type, verb.emit<arith::BitcastOp>(typeOf(value.getContext(), type, shapeOf(value)), value)));
}

} // namespace kiln

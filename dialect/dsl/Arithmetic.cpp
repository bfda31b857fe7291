// Elementwise functions: arithmetic, comparisons, bits, math functions, selection and casts.

#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kiln {

/// The element types of a function; others are an error with a hint to cast.
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

static Operands unifyAs(Call &call, Takes takes, ArrayRef<const At *> operands) {
  Operands result = unify(call, operands);
  if (!result || !checkArithmetic(call, result.values[0]))
    return {};
  if (accepts(takes, result.type))
    return result;
  call.expected() << nameOf(takes) << ", but got " << nameOf(result.type) << "; use cast()";
  return {};
}

/// Emits an operation with an attribute for signedness, or one for which it does not matter.
template <class Op> static mlir::Value emitIntegers(Call &call, const Operands &operands) {
  auto op = call.emit<Op>(operands.values[0], operands.values[1]);
  if constexpr (std::is_same_v<Op, tile::DivOp> || std::is_same_v<Op, tile::RemOp> || std::is_same_v<Op, tile::ShrOp>)
    tile::setUnsigned(op, isUnsigned(operands.type));
  return op;
}

/// A function of two operands: `Real` on floats, `Integer` on signed integers, `Unsigned` on unsigned ones.
template <class Real, class Integer, class Unsigned = Integer>
static Tile binary(const char *name, Takes takes, const At &a, const At &b) {
  Call call(name, a.loc);
  Operands operands = unifyAs(call, takes, {&a, &b});
  if (!operands)
    return call.poison();
  if (isFloat(operands.type))
    return call.result(call.emit<Real>(operands.values[0], operands.values[1]));
  return call.result(isUnsigned(operands.type) ? emitIntegers<Unsigned>(call, operands)
                                               : emitIntegers<Integer>(call, operands));
}

template <class Integer> static Tile binary(const char *name, Takes takes, const At &a, const At &b) {
  Call call(name, a.loc);
  Operands operands = unifyAs(call, takes, {&a, &b});
  return operands ? call.result(emitIntegers<Integer>(call, operands)) : call.poison();
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
  Call call("-", a.loc);
  Operands operands = unifyAs(call, Takes::numbers, {&a});
  if (!operands)
    return call.poison();
  if (isFloat(operands.type))
    return call.result(call.emit<arith::NegFOp>(operands.values[0]));
  mlir::Value zero = call.constant({}, operands.type, operands.shape);
  return call.result(call.emit<arith::SubIOp>(zero, operands.values[0]));
}

/// Inverts every bit.
static Tile complement(Call &call, Takes takes, const At &a) {
  Operands operands = unifyAs(call, takes, {&a});
  if (!operands)
    return call.poison();
  mlir::Value ones = call.constant(Literal::allOnes(operands.type), operands.type, operands.shape);
  return call.result(call.emit<arith::XOrIOp>(operands.values[0], ones));
}

Tile operator~(At a) {
  Call call("~", a.loc);
  return complement(call, Takes::bits, a);
}

Tile operator!(const Tile &a) {
  Call call("!", Tracer::declaredAt(a));
  mlir::Value value = call.value(At(a, call.loc));
  if (value && elementOf(value) != boolean)
    return call.expected() << "boolean, but got " << describe(value) << "; compare it with 0";
  return value ? complement(call, Takes::bits, At(a, call.loc)) : call.poison();
}

// --- Comparisons -----------------------------------------------------------------------------------------------------

static Tile compare(const char *name, const At &a, const At &b, arith::CmpFPredicate real, arith::CmpIPredicate integer,
                    arith::CmpIPredicate otherwise) {
  Call call(name, a.loc);
  Operands operands = unify(call, {&a, &b});
  if (!operands || !checkArithmetic(call, operands.values[0]))
    return call.poison();
  if (isFloat(operands.type))
    return call.result(call.emit<arith::CmpFOp>(real, operands.values[0], operands.values[1]));
  // Booleans are compared as unsigned, because a signed true is -1.
  auto predicate = isInteger(operands.type) && !isUnsigned(operands.type) ? integer : otherwise;
  return call.result(call.emit<arith::CmpIOp>(predicate, operands.values[0], operands.values[1]));
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

/// Records the error bound of a function's result, if it is larger than usual.
static mlir::Value permit(mlir::Value result, Accuracy accuracy) {
  tile::setAccuracy(result.getDefiningOp(), static_cast<tile::Accuracy>(accuracy));
  return result;
}

template <class Op> static Tile unary(const char *name, const At &x, Accuracy accuracy = Accuracy::full) {
  static_assert(static_cast<int>(Accuracy::fast) == static_cast<int>(tile::Accuracy::Fast));
  Call call(name, x.loc);
  At operand = x;
  if (auto number = Tracer::literalOf(x))
    operand = At(number->asReal(), x.loc);
  Operands operands = unifyAs(call, Takes::floats, {&operand});
  return operands ? call.result(permit(call.emit<Op>(operands.values[0]), accuracy)) : call.poison();
}

template <class Op> static Tile binaryOfFloats(const char *name, const At &a, const At &b) {
  Call call(name, a.loc);
  Operands operands = unifyAs(call, Takes::floats, {&a, &b});
  return operands ? call.result(call.emit<Op>(operands.values[0], operands.values[1])) : call.poison();
}

/// A rounding function; integers are unchanged.
template <class Op> static Tile rounding(const char *name, const At &x) {
  Call call(name, x.loc);
  Operands operands = unifyAs(call, Takes::numbers, {&x});
  if (!operands)
    return call.poison();
  return call.result(isFloat(operands.type) ? call.emit<Op>(operands.values[0]).getResult() : operands.values[0]);
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
  Call call("divide", a.loc);
  Operands operands = unifyAs(call, Takes::floats, {&a, &b});
  return operands ? call.result(permit(call.emit<arith::DivFOp>(operands.values[0], operands.values[1]), accuracy))
                  : call.poison();
}

Tile round(At x) { return rounding<math::RoundEvenOp>("round", x); }
Tile trunc(At x) { return rounding<math::TruncOp>("trunc", x); }
Tile floor(At x) { return rounding<math::FloorOp>("floor", x); }
Tile ceil(At x) { return rounding<math::CeilOp>("ceil", x); }

Tile copysign(At x, At sign) { return binaryOfFloats<math::CopySignOp>("copysign", x, sign); }

Tile abs(At x) {
  Call call("abs", x.loc);
  Operands operands = unifyAs(call, Takes::numbers, {&x});
  if (!operands)
    return call.poison();
  if (isUnsigned(operands.type))
    return call.result(operands.values[0]);
  if (isFloat(operands.type))
    return call.result(call.emit<math::AbsFOp>(operands.values[0]));
  return call.result(call.emit<math::AbsIOp>(operands.values[0]));
}

/// A function of the bits of integers.
template <class Op> static Tile ofBits(const char *name, const At &x) {
  Call call(name, x.loc);
  Operands operands = unifyAs(call, Takes::integers, {&x});
  return operands ? call.result(call.emit<Op>(operands.values[0])) : call.poison();
}

Tile popcount(At x) { return ofBits<math::CtPopOp>("popcount", x); }
Tile clz(At x) { return ofBits<math::CountLeadingZerosOp>("clz", x); }

Tile fma(At a, At b, At c) {
  Call call("fma", a.loc);
  Operands operands = unifyAs(call, Takes::numbers, {&a, &b, &c});
  if (!operands)
    return call.poison();
  auto &v = operands.values;
  if (isFloat(operands.type))
    return call.result(call.emit<math::FmaOp>(v[0], v[1], v[2]));
  return call.result(call.emit<arith::AddIOp>(call.emit<arith::MulIOp>(v[0], v[1]), v[2]));
}

Tile clamp(At x, At low, At high) {
  Call call("clamp", x.loc);
  Operands operands = unifyAs(call, Takes::numbers, {&x, &low, &high});
  if (!operands)
    return call.poison();
  auto &v = operands.values;
  if (isFloat(operands.type))
    return call.result(call.emit<arith::MinNumFOp>(call.emit<arith::MaxNumFOp>(v[0], v[1]), v[2]));
  if (isUnsigned(operands.type))
    return call.result(call.emit<arith::MinUIOp>(call.emit<arith::MaxUIOp>(v[0], v[1]), v[2]));
  return call.result(call.emit<arith::MinSIOp>(call.emit<arith::MaxSIOp>(v[0], v[1]), v[2]));
}

Tile where(At condition, At a, At b) {
  Call call("where", condition.loc);
  mlir::Value chosen = call.value(condition);
  if (chosen && elementOf(chosen) != boolean) {
    call.expected() << "a boolean condition, but got " << describe(chosen) << "; compare it, as x > 0";
    chosen = {};
  }
  Operands operands = unify(call, {&a, &b});
  if (!chosen || !operands)
    return call.poison();
  auto shape = broadcastShape(shapeOf(chosen), operands.shape);
  if (!shape)
    return call.expected() << "shapes that broadcast, but got a condition of shape " << textOf(shapeOf(chosen))
                           << " and values of shape " << textOf(operands.shape);
  return call.result(call.emit<arith::SelectOp>(call.broadcast(chosen, *shape),
                                                call.broadcast(operands.values[0], *shape),
                                                call.broadcast(operands.values[1], *shape)));
}

Tile cast(At x, Type type) {
  Call call("cast", x.loc);
  mlir::Value value = call.value(x);
  return value && checkCast(call, value, type) ? call.result(call.cast(value, type)) : call.poison();
}

Tile bitcast(At x, Type type) {
  Call call("bitcast", x.loc);
  mlir::Value value = call.value(x);
  if (!value)
    return call.poison();
  const Type from = elementOf(value);
  if (from == boolean || type == boolean || bytesOf(from) != bytesOf(type))
    return call.expected() << "a type of " << bytesOf(from) << (bytesOf(from) == 1 ? " byte" : " bytes")
                           << " that is not boolean for " << describe(value) << ", but got " << nameOf(type);
  const mlir::Type result = typeOf(value.getContext(), type, shapeOf(value));
  if (result == value.getType())
    return call.result(call.cast(value, type));
  return call.result(call.of(type, call.emit<arith::BitcastOp>(result, value)));
}

} // namespace kiln

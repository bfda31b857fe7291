// Emits conversions and constants of scalars, tiles and vectors.

#include "lowering/tile/Emit.h"

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace kiln::lowering {

Type typeLike(Type type, Type element) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(element);
  return element;
}

Value Emit::integer(Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  auto attr = IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), value, false, /*implicitTrunc=*/true));
  if (auto shaped = dyn_cast<ShapedType>(type))
    return make<arith::ConstantOp>(DenseElementsAttr::get(shaped, attr));
  return make<arith::ConstantOp>(attr);
}

Value Emit::real(Type type, double value) {
  auto attr = FloatAttr::get(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    return make<arith::ConstantOp>(DenseElementsAttr::get(shaped, attr));
  return make<arith::ConstantOp>(attr);
}

Value Emit::bits(Value value, Type element) {
  return make<arith::BitcastOp>(typeLike(value.getType(), element), value);
}

Value Emit::spread(Value scalar, Type type) {
  if (scalar.getType() == type)
    return scalar;
  if (isa<VectorType>(type))
    return make<vector::BroadcastOp>(type, scalar);
  return make<tile::SplatOp>(type, scalar);
}

Operation *Emit::again(Operation &op, ValueRange operands, TypeRange results) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto shaped = dyn_cast<ShapedType>(results[0]))
      return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(shaped, Attribute(constant.getValue())));
  OperationState state(loc, op.getName(), operands, results);
  state.propertiesAttr = op.getPropertiesAsAttribute();
  state.addAttributes(op.getDiscardableAttrDictionary().getValue());
  return builder.create(state);
}

Value Emit::cast(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  if (isa<IntegerType>(from))
    return isa<IntegerType>(element) ? castInteger(value, element) : castToReal(value, element);
  return isa<IntegerType>(element) ? castToInteger(value, element) : castReal(value, element);
}

Value Emit::castInteger(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType()), type = typeLike(value.getType(), element);
  if (element.isInteger(1))
    return compare(arith::CmpIPredicate::ne, value, integer(value.getType(), 0));
  if (from.isInteger(1))
    return make<arith::ExtUIOp>(type, value);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return make<arith::ExtSIOp>(type, value);
  return make<arith::TruncIOp>(type, value);
}

/// Rounds integers that f64 cannot hold to odd: drops the low eleven bits, and sets the lowest kept bit if one of them
/// was set. The conversion to f64 is then exact, and rounding it to a narrow float equals rounding the integer.
Value Emit::stickyBits(Value i64) {
  Type type = i64.getType();
  Value low = make<arith::AndIOp>(i64, integer(type, 0x7FF));
  Value carry = make<arith::AddIOp>(low, integer(type, 0x7FF));
  Value sticky = make<arith::AndIOp>(make<arith::OrIOp>(i64, carry), integer(type, ~int64_t(0x7FF)));
  Value shifted = make<arith::AddIOp>(i64, integer(type, int64_t(1) << 53)); // maps −2^53 … 2^53 to 0 … 2^54
  Value exact = compare(arith::CmpIPredicate::ule, shifted, integer(type, int64_t(1) << 54));
  return select(exact, i64, sticky);
}

Value Emit::castToReal(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from.getIntOrFloatBitWidth() <= 16) { // exact in f32
    value = castInteger(value, builder.getI32Type());
    return castReal(make<arith::SIToFPOp>(typeLike(value.getType(), builder.getF32Type()), value), element);
  }
  if (!tile::isNarrowFloat(element))
    return make<arith::SIToFPOp>(typeLike(value.getType(), element), value);
  if (from.isInteger(64))
    value = stickyBits(value);
  return castReal(make<arith::SIToFPOp>(typeLike(value.getType(), builder.getF64Type()), value), element);
}

/// NaN and numbers out of range are replaced before the conversion; the result of numbers that are too large is
/// selected after it.
Value Emit::castToInteger(Value value, Type element) {
  if (tile::isNarrowFloat(getElementTypeOrSelf(value.getType())))
    value = castReal(value, builder.getF32Type());
  Type type = value.getType();
  if (element.isInteger(1))
    return compare(arith::CmpFPredicate::UNE, value, real(type, 0));
  unsigned width = element.getIntOrFloatBitWidth();
  double end = std::ldexp(1.0, width - 1);
  Value low = real(type, -end), high = real(type, end);
  Value notBelow = select(compare(arith::CmpFPredicate::OLT, value, low), low, value);
  Value inRange = compare(arith::CmpFPredicate::OLT, notBelow, high);
  Value safe = select(inRange, notBelow, real(type, 0));
  Type direct = width < 32 ? Type(builder.getI32Type()) : element;
  Value converted = make<arith::FPToSIOp>(typeLike(type, direct), safe);
  if (direct != element)
    converted = make<arith::TruncIOp>(typeLike(type, element), converted);
  Value above = compare(arith::CmpFPredicate::OGE, value, high);
  Value largest = integer(converted.getType(), APInt::getSignedMaxValue(width).getSExtValue());
  return select(above, largest, converted);
}

/// `real`, separated from the integer conversion that produced it. Canonicalisation would merge it with a following
/// narrowing and round once, where two casts round twice. Copying a number's own sign does not change it.
Value Emit::settled(Value real) {
  Operation *conversion = real.getDefiningOp();
  if (!isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(conversion) ||
      getElementTypeOrSelf(conversion->getOperand(0).getType()).getIntOrFloatBitWidth() < 32)
    return real;
  return make<math::CopySignOp>(real, real);
}

/// f64 → f32, rounded to odd: an inexact result becomes the neighbour with an odd last bit.
Value Emit::narrowToOdd(Value f64) {
  Type f32Type = typeLike(f64.getType(), builder.getF32Type());
  Value nearest = make<arith::TruncFOp>(f32Type, f64);
  Value back = make<arith::ExtFOp>(f64.getType(), nearest);
  Value inexact = compare(arith::CmpFPredicate::ONE, back, f64);
  auto magnitude = [&](Value x) {
    Value word = bits(x, builder.getI64Type());
    return make<arith::AndIOp>(word, integer(word.getType(), INT64_MAX));
  };
  // Words of floats increase with magnitude, so the word minus one is the next value towards zero.
  Value away = compare(arith::CmpIPredicate::ugt, magnitude(back), magnitude(f64));
  Value word = bits(nearest, builder.getI32Type());
  Value one = integer(word.getType(), 1);
  Value toZero = select(away, make<arith::SubIOp>(word, one), word);
  Value odd = make<arith::OrIOp>(toZero, one);
  return bits(select(inexact, odd, word), builder.getF32Type());
}

/// A scale's byte is the exponent of an f32, except that 0 becomes a denormal and 255 NaN.
static Value realOfScale(Emit &emit, Value byte) {
  MLIRContext *context = byte.getContext();
  Value word = emit.make<arith::ExtUIOp>(typeLike(byte.getType(), IntegerType::get(context, 32)), byte);
  const auto constant = [&](int64_t value) { return emit.integer(word.getType(), value); };
  Value isLeast = emit.compare(arith::CmpIPredicate::eq, word, constant(0));
  Value isNaN = emit.compare(arith::CmpIPredicate::eq, word, constant(255));
  Value bits = emit.make<arith::ShLIOp>(word, constant(23));
  bits = emit.select(isLeast, constant(0x400000), emit.select(isNaN, constant(0x7FC00000), bits));
  return emit.bits(bits, Float32Type::get(context));
}

/// By bits: f16 is e5m2 followed by eight zeros; e4m3 is shifted right by one more, apart from NaN and a bias smaller
/// by 8.
Value realOfByte(Emit &emit, Value word, Type element) {
  if (tile::isScale(element))
    return realOfScale(emit, word);
  MLIRContext *context = word.getContext();
  const bool isE5M2 = isa<Float8E5M2Type>(element);
  word = emit.make<arith::ExtUIOp>(typeLike(word.getType(), IntegerType::get(context, 16)), word);
  const auto constant = [&](int64_t value) { return emit.integer(word.getType(), value); };
  const auto widened = [&](Value halfBits) {
    Value half = emit.bits(halfBits, Float16Type::get(context));
    return emit.make<arith::ExtFOp>(typeLike(half.getType(), Float32Type::get(context)), half);
  };
  if (isE5M2)
    return widened(emit.make<arith::ShLIOp>(word, constant(8)));
  Value sign = emit.make<arith::ShLIOp>(emit.make<arith::AndIOp>(word, constant(0x80)), constant(8));
  Value size = emit.make<arith::AndIOp>(word, constant(0x7F));
  Value scaled = widened(emit.make<arith::OrIOp>(sign, emit.make<arith::ShLIOp>(size, constant(7))));
  scaled = emit.make<arith::MulFOp>(scaled, emit.real(scaled.getType(), 256.0));
  Value isNaN = emit.compare(arith::CmpIPredicate::eq, size, constant(0x7F));
  return emit.select(isNaN, emit.real(scaled.getType(), std::numeric_limits<double>::quiet_NaN()), scaled);
}

/// The byte of an f32 as a scale: the nearest power of two, the larger one of two. Adding half an exponent carries;
/// denormals from 2^-127 on have their tie at 1.5 · 2^-127.
static Value toScale(Emit &emit, Value real) {
  MLIRContext *context = real.getContext();
  Value word = emit.bits(real, IntegerType::get(context, 32));
  const auto constant = [&](int64_t value) { return emit.integer(word.getType(), value); };
  Value size = emit.make<arith::AndIOp>(word, constant(INT32_MAX)); // of −0
  Value carried = emit.make<arith::AddIOp>(size, constant(0x400000));
  Value code = emit.make<arith::MinUIOp>(emit.make<arith::ShRUIOp>(carried, constant(23)), constant(254));
  Value isLeast = emit.compare(arith::CmpIPredicate::ult, size, constant(0x600000));
  Value isWrong = emit.compare(arith::CmpFPredicate::ULT, real, emit.real(real.getType(), 0)); // NaN or negative
  code = emit.select(isWrong, constant(255), emit.select(isLeast, constant(0), code));
  return emit.make<arith::TruncIOp>(typeLike(code.getType(), IntegerType::get(context, 8)), code);
}

/// Rounds an f32 to an 8-bit float, to nearest even; larger numbers saturate.
static Value toByte(Emit &emit, Value real, Type element) {
  if (tile::isScale(element))
    return emit.bits(toScale(emit, real), element);
  MLIRContext *context = real.getContext();
  const bool isE5M2 = isa<Float8E5M2Type>(element);
  const int mantissa = isE5M2 ? 2 : 3, bias = isE5M2 ? 15 : 7, drop = 23 - mantissa;
  Value word = emit.bits(real, IntegerType::get(context, 32));
  const auto constant = [&](int64_t value) { return emit.integer(word.getType(), value); };
  Value size = emit.make<arith::AndIOp>(word, constant(INT32_MAX));
  // Normal numbers: adding half a unit in the last place (minus one if it is even) carries correctly.
  Value last = emit.make<arith::AndIOp>(emit.make<arith::ShRUIOp>(size, constant(drop)), constant(1));
  Value carried = emit.make<arith::AddIOp>(emit.make<arith::AddIOp>(size, constant((1 << (drop - 1)) - 1)), last);
  Value normal = emit.make<arith::SubIOp>(emit.make<arith::ShRUIOp>(carried, constant(drop)),
                                          constant(int64_t(127 - bias) << mantissa));
  // Denormals have a common unit. Adding a number whose last place is that unit rounds correctly.
  const auto unit = static_cast<float>(std::ldexp(1.0, 1 - bias - mantissa + 23));
  Value sum = emit.make<arith::AddFOp>(emit.bits(size, Float32Type::get(context)), emit.real(real.getType(), unit));
  Value small =
      emit.make<arith::SubIOp>(emit.bits(sum, IntegerType::get(context, 32)), constant(std::bit_cast<int32_t>(unit)));
  const int32_t least = std::bit_cast<int32_t>(std::ldexp(1.0f, 1 - bias)); // the smallest normal number
  Value rounded = emit.select(emit.compare(arith::CmpIPredicate::ult, size, constant(least)), small, normal);
  rounded = emit.make<arith::MinUIOp>(rounded, constant(isE5M2 ? 0x7B : 0x7E));
  Value isNaN = emit.compare(arith::CmpIPredicate::ugt, size, constant(0x7F800000));
  rounded = emit.select(isNaN, constant(0x7F), rounded);
  Value sign = emit.make<arith::AndIOp>(emit.make<arith::ShRUIOp>(word, constant(24)), constant(0x80));
  Value both = emit.make<arith::OrIOp>(rounded, sign);
  return emit.bits(emit.make<arith::TruncIOp>(typeLike(both.getType(), IntegerType::get(context, 8)), both), element);
}

Value Emit::castReal(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  if (tile::isByteFloat(from))
    return castReal(realOfByte(*this, bits(value, IntegerType::get(value.getContext(), 8)), from), element);
  value = settled(value);
  if (tile::isByteFloat(element)) {
    Value single = from.isF64() ? narrowToOdd(value) : castReal(value, builder.getF32Type());
    return toByte(*this, single, element);
  }
  if (from.isF64() && tile::isNarrowFloat(element))
    value = narrowToOdd(value);
  else if (tile::isNarrowFloat(from) && !element.isF32())
    value = make<arith::ExtFOp>(typeLike(value.getType(), builder.getF32Type()), value);
  from = getElementTypeOrSelf(value.getType());
  Type type = typeLike(value.getType(), element);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return make<arith::ExtFOp>(type, value);
  return make<arith::TruncFOp>(type, value);
}

Value Emit::addToOdd(Value a, Value b) {
  Value sum = make<arith::AddFOp>(a, b);
  // Knuth's two-sum: the exact error of the sum.
  Value bRounded = make<arith::SubFOp>(sum, a);
  Value aRounded = make<arith::SubFOp>(sum, bRounded);
  Value error = make<arith::AddFOp>(make<arith::SubFOp>(a, aRounded), make<arith::SubFOp>(b, bRounded));
  Value word = bits(sum, builder.getI64Type()), errorWord = bits(error, builder.getI64Type());
  Value zero = integer(word.getType(), 0), one = integer(word.getType(), 1);
  Value inexact = compare(arith::CmpFPredicate::ONE, error, real(error.getType(), 0));
  Value even = compare(arith::CmpIPredicate::eq, make<arith::AndIOp>(word, one), zero);
  Value outward = compare(arith::CmpIPredicate::sge, make<arith::XOrIOp>(word, errorWord), zero);
  Value step = select(outward, one, integer(word.getType(), -1));
  Value odd = make<arith::AddIOp>(word, step);
  return bits(select(make<arith::AndIOp>(inexact, even), odd, word), builder.getF64Type());
}

// --- Unsigned integers -----------------------------------------------------------------------------------------------

/// Rounds integers that f64 cannot hold to odd: drops the low eleven bits, and sets the lowest kept bit if one of them
/// was set. The conversion to f64 is then exact, and rounding it to a narrow float equals rounding the integer.
static Value stickyBits(Emit &emit, Value integer) {
  const Type type = integer.getType();
  Value low = emit.make<arith::AndIOp>(integer, emit.integer(type, 0x7FF));
  Value carry = emit.make<arith::AddIOp>(low, emit.integer(type, 0x7FF));
  Value sticky = emit.make<arith::AndIOp>(emit.make<arith::OrIOp>(integer, carry), emit.integer(type, ~int64_t(0x7FF)));
  Value exact = emit.compare(arith::CmpIPredicate::ule, integer, emit.integer(type, int64_t(1) << 53));
  return emit.select(exact, integer, sticky);
}

static Value toReal(Emit &emit, Value integer, Type element) {
  const unsigned width = getElementTypeOrSelf(integer.getType()).getIntOrFloatBitWidth();
  const auto convert = [&](Type to) { return emit.make<arith::UIToFPOp>(typeLike(integer.getType(), to), integer); };
  if (width <= 16) { // i32 contains it
    const Type i32 = typeLike(integer.getType(), IntegerType::get(integer.getContext(), 32));
    return emit.cast(emit.make<arith::ExtUIOp>(i32, integer), element);
  }
  if (!tile::isNarrowFloat(element))
    return convert(element);
  if (width == 64)
    integer = stickyBits(emit, integer);
  return emit.cast(convert(Float64Type::get(integer.getContext())), element);
}

/// NaN and numbers out of range are replaced before the conversion; the result of numbers that are too large is
/// selected after it.
static Value toInteger(Emit &emit, Value real, Type element) {
  MLIRContext *context = real.getContext();
  if (tile::isNarrowFloat(getElementTypeOrSelf(real.getType())))
    real = emit.cast(real, Float32Type::get(context));
  const Type type = real.getType();
  const unsigned width = element.getIntOrFloatBitWidth();
  Value zero = emit.real(type, 0), end = emit.real(type, std::ldexp(1.0, static_cast<int>(width)));
  Value isAbove = emit.compare(arith::CmpFPredicate::OGT, real, zero); // false for NaN
  Value isBelow = emit.compare(arith::CmpFPredicate::OLT, real, end);
  Value safe = emit.select(emit.make<arith::AndIOp>(isAbove, isBelow), real, zero);
  Value converted;
  if (width < 32) {
    const Type i32 = typeLike(type, IntegerType::get(context, 32));
    converted = emit.make<arith::TruncIOp>(typeLike(type, element), emit.make<arith::FPToSIOp>(i32, safe));
  } else {
    converted = emit.make<arith::FPToUIOp>(typeLike(type, element), safe);
  }
  Value isLarge = emit.compare(arith::CmpFPredicate::OGE, real, end);
  return emit.select(isLarge, emit.integer(converted.getType(), -1), converted);
}

Value castUnsigned(Emit &emit, Value value, Type element) {
  const Type from = getElementTypeOrSelf(value.getType());
  if (!isa<IntegerType>(from))
    return element.isInteger(1) ? emit.cast(value, element) : toInteger(emit, value, element);
  if (from.isInteger(1) || element.isInteger(1))
    return emit.cast(value, element);
  if (!isa<IntegerType>(element))
    return toReal(emit, value, element);
  const bool widens = from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth();
  return widens ? emit.make<arith::ExtUIOp>(typeLike(value.getType(), element), value) : emit.cast(value, element);
}

} // namespace kiln::lowering

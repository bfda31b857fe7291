// Conversions of unsigned integers, on scalars, tiles and vectors.

#include "lowering/tile/UnsignedCasts.h"

#include "dialect/tile/TypeRules.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

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

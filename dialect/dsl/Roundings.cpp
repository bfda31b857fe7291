// Conversions that round in a given direction, or stochastically.
//
// Each rounds towards zero first. If the direction or the random bits require it, the result then moves one number away
// from zero. An increment of its bits does that, because the bits of floats of one sign are ordered by magnitude.
//
//     cast(-1.3, i8, Rounding::down)            -2
//     cast(x, bf16, Rounding::toward_zero)      the upper 16 bits of an f32, unless it is NaN

#include "dialect/dsl/Tracer.h"

#include <bit>
#include <cmath>

namespace kiln {

namespace {
/// A conversion to a float that rounds towards zero.
struct Truncated {
  Tile word;       // the bits of the result, as a signed integer
  Tile isInexact;  // boolean: the result differs from the operand, which is a number
  Tile isNegative; // boolean: the operand is
};
} // namespace

/// The signed integer of the size of a float.
static Type wordOf(Type type) {
  static constexpr Type words[] = {i8, i16, i32, i64};
  return words[std::countr_zero(static_cast<uint64_t>(bytesOf(type)))];
}

/// `x`, a float, clamped to the range of scales; a negative number becomes NaN.
static Tile saturatedScale(const Line &at, const Tile &x) {
  const Tile isNegative = at(x) < at(0);
  return where(at(isNegative), at(NAN), at(clamp(at(x), at(0x1p-127), at(0x1p127), Nans::propagate)));
}

/// `x`, a float or integer, clamped to the range of an 8-bit float `type`, because conversions to it saturate.
/// Unchanged for other types.
static Tile saturated(const Line &at, const Tile &x, Type type) {
  if (bytesOf(type) > 1)
    return x;
  const Type from = x.type(at.loc);
  if (type == f8e8m0)
    return isFloat(from) ? saturatedScale(at, x) : x;
  const int64_t largest = type == f8e4m3 ? 448 : 57344;
  const Tile low = cast(at(isUnsigned(from) ? 0 : -largest), from), high = cast(at(largest), from);
  return clamp(at(x), at(low), at(high), Nans::propagate);
}

/// The float type in which operands of type `from`, except integers of 64 bits, are compared with results.
static Type exactTypeOf(Type from) { return from == f64 || (!isFloat(from) && bytesOf(from) > 2) ? f64 : f32; }

/// Whether the float `type` has every number of `from`.
static bool holds(Type type, Type from) {
  const bool isLong = !isFloat(from) && bytesOf(from) == 8;
  if (from == f8e8m0 && type == f16)
    return false;
  return type == from || (bytesOf(from) == 1 && bytesOf(type) > 1) ||
         (!isLong && bytesOf(type) >= bytesOf(exactTypeOf(from)));
}

/// The nearest number to x, or its neighbour towards zero if the nearest number is farther from zero than x.
static Truncated truncateNearest(const Line &at, const Tile &near, const Tile &isAbove, const Tile &isBelow,
                                 const Tile &isNegative) {
  const Type word = wordOf(near.type(at.loc));
  const Tile bits = bitcast(at(near), word), isBeyond = where(at(isNegative), at(isBelow), at(isAbove));
  const Tile inside = at(bits) - at(cast(at(isBeyond), word));
  return {inside, at(isAbove) | at(isBelow), isNegative};
}

/// A 64-bit integer to a float. Floats from 2^63 on, or 2^64 for unsigned integers, are above every integer.
static Truncated truncateLong(const Line &at, const Tile &x, Type type) {
  const Type from = x.type(at.loc);
  const Tile near = cast(at(x), type), real = cast(at(near), f64), back = cast(at(near), from);
  const Tile isBeyond = at(real) >= at(isUnsigned(from) ? 0x1p64 : 0x1p63), isAbove = at(back) > at(x);
  const Tile isBefore = at(real) < at(-0x1p63), isBelow = at(back) < at(x);
  const Tile isOver = at(isAbove) | at(isBeyond), isUnder = at(isBelow) | at(isBefore), isNegative = at(x) < at(0);
  return truncateNearest(at, near, isOver, isUnder, isNegative);
}

/// An f32 to bf16: its upper half. The result for NaN is arbitrary; finished() replaces it.
static Truncated truncateHalf(const Line &at, const Tile &x) {
  const Tile word = bitcast(at(x), i32), lower = at(word) & at(0xFFFF), upper = at(word) >> at(16);
  return {cast(at(upper), i16), at(lower) != at(0), at(word) < at(0)};
}

/// f32 or f64 to a narrower float.
static Truncated truncateFloat(const Line &at, const Tile &x, Type type) {
  if (x.type(at.loc) == f32 && type == bf16)
    return truncateHalf(at, x);
  const Tile near = cast(at(x), type), back = cast(at(near), x.type(at.loc));
  const Tile isAbove = at(back) > at(x), isBelow = at(back) < at(x), isNegative = at(x) < at(0);
  return truncateNearest(at, near, isAbove, isBelow, isNegative);
}

/// The result: the truncated number, moved one number away from zero where `grows`. NaN stays NaN.
static Tile finished(const Line &at, const Tile &x, const Truncated &low, const Tile &grows, Type type) {
  const Tile word = at(low.word) + at(cast(at(grows), wordOf(type))), result = bitcast(at(word), type);
  if (x.type(at.loc) != f32 || type != bf16)
    return result; // NaN is neither above nor below its conversion
  const Tile isNan = isnan(at(x)), near = cast(at(x), type);
  return where(at(isNan), at(near), at(result));
}

static Tile roundTo(const Line &at, const Tile &x, const Truncated &low, Type type, Rounding rounding) {
  if (rounding == Rounding::toward_zero)
    return finished(at, x, low, full(boolean, x.shape(at.loc), at(false), at.loc), type);
  const Tile isUp = !low.isNegative, side = rounding == Rounding::down ? low.isNegative : isUp;
  return finished(at, x, low, at(low.isInexact) & at(side), type);
}

/// A float to an integer. The caller has converted 8-bit floats to f32.
static Tile roundWhole(const Line &at, const Tile &x, Type type, Rounding rounding) {
  const Tile whole = rounding == Rounding::nearest ? round(at(x))
                     : rounding == Rounding::down  ? floor(at(x))
                     : rounding == Rounding::up    ? ceil(at(x))
                                                   : x;
  return cast(at(whole), type);
}

Tile cast(At x, Type type, Rounding rounding) {
  const Line at{x.loc};
  Call call("cast", x.loc);
  const mlir::Value source = call.value(x);
  if (!source || !checkCast(call, source, type))
    return call.poison();
  const Type from = elementOf(source), exact = exactTypeOf(from);
  if (isFloat(from) && isInteger(type))
    return roundWhole(at, call.result(bytesOf(from) == 1 ? call.cast(source, f32) : source), type, rounding);
  const bool isLong = !isFloat(from) && bytesOf(from) == 8;
  if (rounding == Rounding::nearest || from == boolean || !isFloat(type) || holds(type, from))
    return call.result(call.cast(source, type));
  if (isLong) {
    const Tile whole = saturated(at, call.result(source), type);
    const Tile rounded = roundTo(at, whole, truncateLong(at, whole, type), type, rounding);
    return type == f8e8m0 ? where(at(at(whole) < at(0)), at(NAN), at(rounded)) : rounded;
  }
  const Tile real = saturated(at, call.result(call.cast(source, exact)), type);
  return roundTo(at, real, truncateFloat(at, real, type), type, rounding);
}

/// The distance of x from the truncated number, in units of 2^-32 of the distance to the next number. It is below 2^32,
/// except for x above the largest number. NaN if x is NaN.
static Tile droppedFraction(const Line &at, const Tile &x, const Tile &word, Type type) {
  const Type from = x.type(at.loc);
  const auto sizeAt = [&](int offset) { return abs(at(cast(at(bitcast(at(at(word) + at(offset)), type)), from))); };
  const Tile low = sizeAt(0), next = sizeAt(1), before = sizeAt(-1), size = abs(at(x));
  const Tile isLast = isinf(at(next)); // numbers on both sides of the largest one are equally far
  const Tile above = at(next) - at(low), below = at(low) - at(before), step = where(at(isLast), at(below), at(above));
  const Tile rest = at(size) - at(low), quotient = at(rest) / at(step);
  return at(quotient) * at(0x1p32);
}

Tile stochastic_round(At x, Type type, At bits) {
  const Line at{x.loc};
  Call call("stochastic_round", x.loc);
  const mlir::Value source = call.value(x), random = call.value(bits);
  if (!source || !random)
    return call.poison();
  const Type from = elementOf(source), word = elementOf(random), exact = exactTypeOf(from);
  if (!isFloat(from) || !isFloat(type))
    return call.expected() << "floats, but got " << describe(source) << " to round to " << nameOf(type)
                           << "; use cast()";
  if (word != i32 && word != u32)
    return call.expected() << "i32 or u32 as random bits, but got " << describe(random);
  if (broadcastShape(shapeOf(source), shapeOf(random)) != shapeOf(source))
    return call.expected() << "random bits that broadcast to " << describe(source) << ", but got " << describe(random);
  if (holds(type, from))
    return call.result(call.cast(source, type));
  const Tile real = saturated(at, call.result(call.cast(source, exact)), type);
  const Tile chance = call.result(call.cast(call.broadcast(random, shapeOf(source)), u32));
  const Truncated low = truncateFloat(at, real, type);
  if (exact == f32 && type == bf16) {
    const Tile fraction = bitcast(at(at(bitcast(at(real), u32)) << at(16)), u32);
    return finished(at, real, low, at(chance) < at(fraction), type);
  }
  const Tile fraction = droppedFraction(at, real, low.word, type), whole = cast(at(fraction), u32);
  const Tile isBeyond = at(fraction) >= at(0x1p32), isChosen = at(chance) < at(whole);
  return finished(at, real, low, at(isBeyond) | at(isChosen), type);
}

} // namespace kiln

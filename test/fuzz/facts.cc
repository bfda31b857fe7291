// Bounds and errors of sums, products and conversions, from the bounds of dialect/NUMERICS.md.

#include "test/fuzz/facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::fuzz {

static constexpr double infinity = std::numeric_limits<double>::infinity();

bool Facts::bounded() const { return std::isfinite(bound); }

double Facts::error() const { return exact() ? 0 : relative == 0 ? absolute : relative * bound + absolute; }

bool Facts::implies(const Facts &other) const {
  return bound <= other.bound && (whole || !other.whole) && (!openZero || other.openZero) &&
         relative <= other.relative && absolute <= other.absolute;
}

double largestOf(Type type) {
  switch (type) {
  case Type::f8e4m3:
    return 448;
  case Type::f8e5m2:
    return 57344;
  case Type::bf16:
    return 3.3895e38;
  case Type::f16:
    return 65504;
  case Type::f32:
    return std::numeric_limits<float>::max();
  default:
    return std::numeric_limits<double>::max();
  }
}

double unitOf(Type type) {
  switch (type) {
  case Type::f8e4m3:
    return 0x1p-3;
  case Type::f8e5m2:
    return 0x1p-2;
  case Type::bf16:
    return 0x1p-7;
  case Type::f16:
    return 0x1p-10;
  case Type::f32:
    return 0x1p-23;
  default:
    return 0x1p-52;
  }
}

/// The smallest positive number: two roundings of a denormal may differ by it.
static double minOf(Type type) {
  if (bytesOf(type) == 1)
    return type == f8e4m3 ? 0x1p-9 : 0x1p-16;
  return type == bf16 ? 0x1p-133 : type == f16 ? 0x1p-24 : type == f32 ? 0x1p-149 : 0x1p-1074;
}

/// The largest magnitude of an integer type.
static double endOf(Type type) {
  return type == boolean ? 1 : std::ldexp(1.0, static_cast<int>(bytesOf(type)) * 8 - (isUnsigned(type) ? 0 : 1));
}

Facts anything(Type type) {
  if (isFloat(type))
    return {.bound = infinity, .whole = false};
  return {.bound = endOf(type), .openZero = false};
}

Facts wholeNumbers(double bound) { return {.bound = bound}; }

Facts within(Type type, Facts facts) {
  if (isUnsigned(type) || !hasArithmetic(type)) // negative values wrap to large ones, or are NaN
    return anything(type);
  if (isFloat(type) && bytesOf(type) == 1)
    facts.bound *= 1 + unitOf(type); // rounded values may exceed it by so much
  if (!isFloat(type))
    return {.bound = facts.bound <= endOf(type) ? facts.bound : endOf(type), .openZero = false};
  if (!(facts.bound < 0.99 * largestOf(type)))
    facts.bound = infinity;
  facts.whole &= facts.bounded();
  return facts;
}

Facts either(const Facts &a, const Facts &b) {
  return {.bound = std::max(a.bound, b.bound),
          .whole = a.whole && b.whole,
          .openZero = a.openZero || b.openZero,
          .relative = std::max(a.relative, b.relative),
          .absolute = std::max(a.absolute, b.absolute)};
}

/// A sum of `count` terms of magnitude `term`, in `sums`, then rounded to `type`. `carried` is the error of the terms.
static Facts summed(Type type, Type sums, double term, double count, bool whole, double carried) {
  Facts result{.bound = count * term, .whole = whole};
  // Every partial sum is a whole number that the type of the sum holds: exact in any order.
  if (whole && carried == 0 && result.bound <= 1 / unitOf(sums))
    return within(type, result);
  // n · ε · Σ|terms| on each of two machines, a rounding of each product, and a final one that may differ.
  result.whole = false;
  result.absolute = carried + (count + 2) * unitOf(sums) * result.bound + minOf(sums);
  if (sums != type)
    result.absolute += unitOf(type) * result.bound + minOf(type);
  return within(type, result);
}

Type sumsOf(Type type) {
  const bool isSmall = type == boolean || (isInteger(type) && bytesOf(type) < bytesOf(i32));
  return !isSmall ? type : isUnsigned(type) ? u32 : i32;
}

std::optional<Facts> sumOf(Type type, const Facts &terms, int64_t count) {
  if (!isFloat(type)) {
    const Type sums = sumsOf(type);
    return within(sums, {.bound = terms.bound * static_cast<double>(count)});
  }
  if (!terms.bounded())
    return {};
  const auto n = static_cast<double>(count);
  Facts result = summed(type, type == f64 ? f64 : f32, terms.bound, n, terms.whole, n * terms.error());
  if (!result.bounded() && !result.exact())
    return {};
  return result;
}

/// The relative error that `precision` permits for a product of two operands, and so for the sum of `count`.
static double lossOf(Type type, const Facts &left, const Facts &right, int64_t count, Precision precision) {
  if (precision == Precision::ieee || (type != f32 && bytesOf(type) > 1))
    return 0;
  if (type != f32)
    return 34 * 0x1p-13;
  // Integers of so many bits are their own large part.
  const double most = precision == Precision::bf16x3 ? 0x1p8 : 0x1p11;
  if (left.whole && right.whole && left.exact() && right.exact() && std::max(left.bound, right.bound) <= most)
    return 0;
  const double sums = 9 * static_cast<double>(count) * 0x1p-24;
  return precision == Precision::tf32     ? 1.3 * 0x1p-10 + 0x1p-21
         : precision == Precision::tf32x3 ? 5.1 * 0x1p-22 + sums
                                          : 3 * 0x1p-16 + 0x1p-22 + sums;
}

std::optional<Facts> productOf(Type type, const Facts &left, const Facts &right, const Facts &acc, int64_t count,
                               Precision precision) {
  if (!isFloat(type))
    return within(i32, {.bound = left.bound * right.bound * static_cast<double>(count) + acc.bound});
  if (!left.bounded() || !right.bounded() || !acc.bounded())
    return {};
  const Type sums = type == f64 ? f64 : f32;
  const auto n = static_cast<double>(count);
  const double a = left.error(), b = right.error(), loss = lossOf(type, left, right, count, precision);
  double carried = n * (a * right.bound + b * left.bound + a * b) + acc.error();
  if (loss > 0) // and of factors below the normal numbers
    carried += loss * (n * left.bound * right.bound + acc.bound) + n * 0x1p-136 * (left.bound + right.bound + 1);
  // The accumulator counts as the number of terms of equal magnitude.
  const double term = left.bound * right.bound + acc.bound / n;
  Facts result = summed(sums, sums, term, n, left.whole && right.whole && acc.whole, carried);
  if (!result.bounded())
    return {};
  return result;
}

Facts normalFacts() {
  constexpr double most = 6.8;
  return {.bound = most, .whole = false, .absolute = 2 * 5.1 * 0x1p-23 * most}; // two machines, each off by so much
}

std::optional<Facts> softmaxOf(Type type, const Facts &terms, int64_t count) {
  if (!terms.exact() || bytesOf(type) == 1)
    return {};
  // The powers have an error of 2.3 units in the last place each, their sum n · ε more, the quotient half a unit. In
  // narrow floats each of these steps, computed in f32, may be rounded to either neighbour.
  const Type sums = type == f64 ? f64 : f32;
  const double n = static_cast<double>(count);
  Facts result{.bound = terms.bounded() ? 1.01 : infinity, .whole = false};
  result.relative = 2 * (2 * 2.3 + n + 1) * unitOf(sums) + (type == sums ? 0 : 4 * unitOf(type));
  result.absolute = 8 * minOf(type) + (type == f64 ? 0x1p-1020 : 0x1p-124);
  return within(type, result);
}

std::optional<Facts> castOf(Type from, Type to, const Facts &facts) {
  if (isPair(from) || isPair(to))
    return {};
  if (!isFloat(to)) {
    if (!facts.exact())
      return {};
    if (to == boolean)
      return Facts{.bound = 1, .openZero = false};
    return within(to, {.bound = facts.bound}); // saturates, or wraps
  }
  if (to == f8e8m0)
    return facts.exact() ? std::optional(anything(to)) : std::nullopt;
  Facts result = facts;
  if (!isFloat(from))
    result.openZero = false;
  result.bound *= 1 + unitOf(to);
  result = within(to, result);
  const bool narrows = isFloat(from) && (unitOf(to) > unitOf(from) || bytesOf(to) == 1);
  if (!facts.exact() && narrows) {
    result.relative += 2 * unitOf(to);
    result.absolute += 2 * minOf(to);
  }
  if (!result.exact() && !result.bounded())
    return {};
  return result;
}

} // namespace kiln::fuzz

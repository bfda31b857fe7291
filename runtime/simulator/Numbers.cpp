// Rounding to narrow formats, and injected errors.

#include "runtime/simulator/Numbers.h"

#include <cmath>
#include <limits>

namespace kiln::simulator {

double integral(double x, Rounding rounding) {
  switch (rounding) {
  case Rounding::nearest:
    return std::nearbyint(x);
  case Rounding::zero:
    return std::trunc(x);
  case Rounding::down:
    return std::floor(x);
  case Rounding::up:
    return std::ceil(x);
  case Rounding::away:
    return std::round(x);
  }
  return x;
}

double roundTo(double x, const Format &format, Rounding rounding) {
  if (x == 0 || !std::isfinite(x))
    return x;
  const int exponent = std::max(std::ilogb(x), format.minExponent);
  const double scaled = std::ldexp(x, format.mantissa - exponent); // exact
  const double rounded = integral(scaled, rounding);
  const double result = std::ldexp(rounded, exponent - format.mantissa);
  const double largest = std::ldexp(2 - std::ldexp(1.0, -format.mantissa), format.maxExponent);
  if (std::fabs(result) <= largest)
    return std::copysign(result, x);
  const bool toInfinity = rounding == Rounding::nearest || rounding == Rounding::away ||
                          (rounding == Rounding::up && x > 0) || (rounding == Rounding::down && x < 0);
  return std::copysign(toInfinity ? HUGE_VAL : largest, x);
}

uint16_t toHalf(double value, Rounding rounding) {
  if (std::isnan(value))
    return 0x7fff;
  return toHalf(static_cast<float>(roundTo(value, halfFormat, rounding)));
}

uint16_t toBf16(double value, Rounding rounding) {
  return toBf16(static_cast<float>(roundTo(value, bf16Format, rounding)));
}

double floatOf(ptx::Type type, uint64_t bits) {
  switch (type) {
  case ptx::Type::f16:
    return fromHalf(static_cast<uint16_t>(bits));
  case ptx::Type::bf16:
    return fromBf16(static_cast<uint16_t>(bits));
  case ptx::Type::f64:
    return std::bit_cast<double>(bits);
  case ptx::Type::tf32:
    return std::bit_cast<float>(static_cast<uint32_t>(bits) & 0xffffe000);
  default:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
}

double fromEighth(bool isE5m2, uint8_t bits) {
  if (isE5m2)
    return fromHalf(static_cast<uint16_t>(bits << 8));
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7)
    return std::numeric_limits<double>::quiet_NaN();
  const double value = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
  return bits & 0x80 ? -value : value;
}

// --- Injected errors ------------------------------------------------------------------------------------------------

double withError(double y, AllowedError allowed, int times, uint64_t seed, uint64_t input) {
  if (y == 0 || !std::isfinite(y))
    return y;
  uint64_t bits = (input ^ seed * 0x9e3779b97f4a7c15) + 0x632be59bd9b4e019; // splitmix64
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  const double part = static_cast<double>(static_cast<int64_t>(bits ^ bits >> 31)) * 0x1p-63; // in [−1, 1)
  return y + part * times * (allowed.relative * std::fabs(y) + allowed.absolute);
}

} // namespace kiln::simulator

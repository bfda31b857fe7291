// Rounding by the processor's modes, set around one operation that the compiler cannot move.

#include "runtime/simulator/Numbers.h"

#include <cfenv>
#include <limits>

namespace kiln::simulator {

namespace {
class Mode {
public:
  explicit Mode(Rounding rounding) : before(std::fegetround()) {
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    std::fesetround(modes[static_cast<int>(rounding)]);
  }
  ~Mode() { std::fesetround(before); }

private:
  int before;
};
} // namespace

/// Prevents the compiler from moving the computation of a value.
template <class T> static T pinned(T value) {
  volatile T place = value;
  return place;
}

template <class T> static T addGeneric(T a, T b, Rounding rounding) {
  const Mode mode(rounding);
  return pinned(pinned(a) + pinned(b));
}
template <class T> static T multiplyGeneric(T a, T b, Rounding rounding) {
  const Mode mode(rounding);
  return pinned(pinned(a) * pinned(b));
}
template <class T> static T divideGeneric(T a, T b, Rounding rounding) {
  const Mode mode(rounding);
  return pinned(pinned(a) / pinned(b));
}
template <class T> static T fmaGeneric(T a, T b, T c, Rounding rounding) {
  const Mode mode(rounding);
  return pinned(std::fma(pinned(a), pinned(b), pinned(c)));
}
template <class T> static T rootGeneric(T a, Rounding rounding) {
  const Mode mode(rounding);
  return pinned(std::sqrt(pinned(a)));
}

float addIn(float a, float b, Rounding rounding) { return addGeneric(a, b, rounding); }
double addIn(double a, double b, Rounding rounding) { return addGeneric(a, b, rounding); }
float multiplyIn(float a, float b, Rounding rounding) { return multiplyGeneric(a, b, rounding); }
double multiplyIn(double a, double b, Rounding rounding) { return multiplyGeneric(a, b, rounding); }
float divideIn(float a, float b, Rounding rounding) { return divideGeneric(a, b, rounding); }
double divideIn(double a, double b, Rounding rounding) { return divideGeneric(a, b, rounding); }
float fmaIn(float a, float b, float c, Rounding rounding) { return fmaGeneric(a, b, c, rounding); }
double fmaIn(double a, double b, double c, Rounding rounding) { return fmaGeneric(a, b, c, rounding); }
float rootIn(float a, Rounding rounding) { return rootGeneric(a, rounding); }
double rootIn(double a, Rounding rounding) { return rootGeneric(a, rounding); }

double roundTo(double x, const Format &format, Rounding rounding) {
  if (x == 0 || !std::isfinite(x))
    return x;
  const int exponent = std::max(std::ilogb(x), format.minExponent);
  const double scaled = std::ldexp(x, format.mantissa - exponent); // exact
  double rounded = 0;
  switch (rounding) {
  case Rounding::nearest:
    rounded = std::nearbyint(scaled);
    break;
  case Rounding::zero:
    rounded = std::trunc(scaled);
    break;
  case Rounding::down:
    rounded = std::floor(scaled);
    break;
  case Rounding::up:
    rounded = std::ceil(scaled);
    break;
  case Rounding::away:
    rounded = std::round(scaled);
    break;
  }
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

double fromEighth(bool isE5m2, uint8_t bits) {
  if (isE5m2)
    return fromHalf(static_cast<uint16_t>(bits << 8));
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7)
    return std::numeric_limits<double>::quiet_NaN();
  const double value = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
  return bits & 0x80 ? -value : value;
}

} // namespace kiln::simulator

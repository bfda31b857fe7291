// Narrow floats on the host, and the rounding modes of PTX.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <immintrin.h>

namespace kiln::simulator {

/// To nearest even, towards zero, −∞, +∞, to nearest with ties away from zero.
enum class Rounding : uint8_t { nearest, zero, down, up, away };

/// A binary float format: number of explicit mantissa bits, and the exponents of its normal numbers.
struct Format {
  int mantissa, minExponent, maxExponent;
};
inline constexpr Format halfFormat{10, -14, 15}, bf16Format{7, -126, 127}, singleFormat{23, -126, 127},
    tf32Format{10, -126, 127};

/// `x` rounded once to a format. Overflow gives infinity, or the largest number if the rounding mode requires it.
double roundTo(double x, const Format &format, Rounding rounding);

inline float fromHalf(uint16_t bits) { return _cvtsh_ss(bits); }
inline uint16_t toHalf(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline float fromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t toBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff; // the canonical NaN of PTX
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/// A double rounded once to half or bf16.
uint16_t toHalf(double value, Rounding rounding);
uint16_t toBf16(double value, Rounding rounding);

/// The value of an 8-bit float: e5m2 or e4m3.
double fromEighth(bool isE5m2, uint8_t bits);

/// The value; a NaN becomes the canonical NaN of f32 instructions on NVIDIA GPUs. f64 instructions keep the operands'
/// NaNs, as the host does.
inline float withOneNaN(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7fffffff) : value; }
inline double withOneNaN(double value) { return value; }

/// Flushes denormals to zero with their sign.
inline float flushed(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }
/// Clamped to [0, 1]; NaN gives 0.
template <class T> T saturated(T value) { return value > 0 ? (value < 1 ? value : T(1)) : T(0); }

/// The maximum or minimum; +0 is above −0. With one NaN operand it is the other operand, or with `nan` a NaN.
template <class T> T extremum(T a, T b, bool maximum, bool nan) {
  if (std::isnan(a) || std::isnan(b))
    return nan || (std::isnan(a) && std::isnan(b)) ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  if (a == b)
    return std::signbit(a) == maximum ? b : a;
  return (a < b) == maximum ? b : a;
}

/// a + b, a · b, a / b, √a and a · b + c in a rounding mode other than nearest, each rounded once.
float addIn(float a, float b, Rounding rounding);
double addIn(double a, double b, Rounding rounding);
float multiplyIn(float a, float b, Rounding rounding);
double multiplyIn(double a, double b, Rounding rounding);
float divideIn(float a, float b, Rounding rounding);
double divideIn(double a, double b, Rounding rounding);
float fmaIn(float a, float b, float c, Rounding rounding);
double fmaIn(double a, double b, double c, Rounding rounding);
float rootIn(float a, Rounding rounding);
double rootIn(double a, Rounding rounding);

} // namespace kiln::simulator

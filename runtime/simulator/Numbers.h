// Narrow floats on the host, the rounding modes of PTX, and the errors that it allows.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <immintrin.h>
#include <limits>

namespace kiln::simulator {

/// To nearest even, towards zero, −∞, +∞, to nearest with ties away from zero.
enum class Rounding : uint8_t { nearest, zero, down, up, away };

/// A binary float format: number of explicit mantissa bits, and the exponents of its normal numbers.
struct Format {
  int mantissa, minExponent, maxExponent;
};
inline constexpr Format halfFormat{10, -14, 15}, bf16Format{7, -126, 127}, singleFormat{23, -126, 127},
    tf32Format{10, -126, 127};

/// `x` rounded to a whole number.
double integral(double x, Rounding rounding);
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

/// The value of a float of a type; of tf32, the lowest 13 bits are ignored.
double floatOf(ptx::Type type, uint64_t bits);

/// The value; a NaN becomes the canonical NaN of f32 instructions on NVIDIA GPUs. f64 instructions keep the operands'
/// NaNs, as the host does.
inline float withOneNaN(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7fffffff) : value; }
inline double withOneNaN(double value) { return value; }

/// Flushes denormals of f32 to zero with their sign.
inline float flushed(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }
inline double flushed(double value) { return value; }
/// The nearest integer of `bits` bits.
inline __int128 clamped(__int128 value, int bits, bool isSigned) {
  const __int128 one = 1;
  return std::clamp(value, isSigned ? -(one << (bits - 1)) : 0, (one << (isSigned ? bits - 1 : bits)) - 1);
}
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

/// Prevents the compiler from moving the computation of a value.
template <class T> T pinned(T value) {
  volatile T place = value;
  return place;
}

/// Sets the processor's rounding mode, until the object dies.
class ProcessorRounding {
public:
  explicit ProcessorRounding(Rounding rounding) : before(std::fegetround()) {
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    std::fesetround(modes[static_cast<int>(rounding)]);
  }
  ~ProcessorRounding() { std::fesetround(before); }

private:
  const int before;
};

/// One operation on f32 or f64, rounded once in a mode.
template <class Operation, class... Operands>
auto rounded(Rounding rounding, Operation operation, Operands... operands) {
  if (rounding == Rounding::nearest)
    return operation(operands...);
  const ProcessorRounding mode(rounding);
  return pinned(operation(pinned(operands)...));
}

// --- Injected errors ------------------------------------------------------------------------------------------------
//
// They are injected into approximate instructions on request. A program must not depend on results that are better than
// the PTX ISA guarantees.

/// The error bound of an instruction.
struct AllowedError {
  double relative = 0, absolute = 0;
};

/// Bounds of f32 instructions with .approx, and of div.full (PTX ISA, "Floating Point Instructions").
inline constexpr AllowedError ofReciprocal{0x1p-23}, ofRoot{0x1p-23}, ofReciprocalRoot{0x1.13p-23}, ofExp2{0x1p-22},
    ofLog2{0x1p-22, 0x1p-22}, ofSine{0, 0x1.6ap-21}, ofTanh{0x1p-11}, ofDivision{0x1p-22};

/// `y` with an error of up to `times` times the bound. The error is a function of seed and input. Zeros, infinities and
/// NaN stay unchanged.
double withError(double y, AllowedError allowed, int times, uint64_t seed, uint64_t input);

} // namespace kiln::simulator

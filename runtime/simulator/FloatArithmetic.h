// Floating-point arithmetic on scalar and packed types, in every rounding mode.

#pragma once

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Numbers.h"

namespace kiln::simulator {

enum class FloatOperation : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  divideApproximately,
  fma,
  minimum,
  maximum,
  negate,
  absolute
};

struct FloatModifiers {
  Rounding rounding = Rounding::nearest;
  bool flush = false, saturate = false;
  bool nan = false;        // a NaN operand makes the extremum NaN
  bool relu = false;       // negative results become 0
  bool xorsign = false;    // an extremum of magnitudes, with the product's sign
  bool magnitudes = false; // an extremum of three of them
};

/// Takes the rounding mode and `.ftz`.
FloatModifiers takeFloatModifiers(Decoder &decoder, bool saturate);

/// Emits d = operation(a, b, c) on `type`; throws Error for what that type has not. A further type among the modifiers
/// is that of a, and of b in an fma, beside f32: they are widened first, which is exact.
void emitFloat(Decoder &decoder, FloatOperation operation, ptx::Type type, const FloatModifiers &modifiers);

} // namespace kiln::simulator

// Floating-point arithmetic on scalar and packed types in every rounding mode.

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
  bool nan = false;        // a NaN operand makes min and max NaN
  bool relu = false;       // negative results become 0
  bool xorsign = false;    // min or max of magnitudes, with the sign of the product
  bool magnitudes = false; // min or max of three magnitudes
};

/// Takes the rounding mode and `.ftz`.
FloatModifiers takeFloatModifiers(Decoder &decoder, bool saturate);

/// Emits d = operation(a, b, c) on `type`. Throws Error if the type lacks the operation. A second type among the
/// modifiers, next to f32, is the type of a, and in an fma also of b. These operands are first widened, exactly.
void emitFloat(Decoder &decoder, FloatOperation operation, ptx::Type type, const FloatModifiers &modifiers);

} // namespace kiln::simulator

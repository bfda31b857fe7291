// sinh, cosh and their inverses in arithmetic, from a power in two floats and log1p.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

/// e^x / 2 for x ≥ 0, which overflows where sinh and cosh do. The error is a little more than an ulp.
Value MathFunctions::halfOfExp(Value x) {
  Pair exponent = productOf(x, number(wide ? 0x1.71547652b82fep+0 : 0x1.715476p+0)); // log2 e
  exponent.low = fma(x, number(wide ? 0x1.777d0ffda0d24p-56 : 0x1.4ae0c0p-26), exponent.low);
  exponent.high = subtract(exponent.high, number(1));
  return exp2OfTwo(exponent);
}

/// h − 1/(4h) with h = e^|x| / 2. At 1 an error of h is 1.3 times as large in the difference; the quotient rounds by
/// 0.1 ulp and the difference by 0.5. Up to 1 the result is the Taylor series x + x³/6 + …. The first omitted term is
/// relatively less than 2^-31 (f64: 2^-56).
Value MathFunctions::sinh(Value x) {
  static const double terms[] = {0x1.952c77030ad4ap-49, 0x1.ae7f3e733b81fp-41, 0x1.6124613a86d09p-33,
                                 0x1.ae64567f544e4p-26, 0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-13,
                                 0x1.1111111111111p-7,  0x1.5555555555555p-3};
  Value size = magnitude(x), square = multiply(x, x);
  Value bend =
      multiply(square, polynomial(square, wide ? ArrayRef<double>(terms) : ArrayRef<double>(terms).drop_front(3)));
  Value near = fma(size, bend, size), half = halfOfExp(size);
  Value far = subtract(half, divide(number(0.25), half));
  return withSign(emit.select(above(size, 1), far, near), x);
}

/// h + 1/(4h), with h = e^|x| / 2.
Value MathFunctions::cosh(Value x) {
  Value half = halfOfExp(magnitude(x));
  return add(half, divide(number(0.25), half));
}

/// log1p of the argument, or log 2x if x is so large that adding 1 has no effect.
Value MathFunctions::logOfSum(Value x, Value argument) {
  Value isLarge = above(x, wide ? 0x1p60 : 0x1p30);
  Value log = log1p(emit.select(isLarge, x, argument));
  return add(log, emit.select(isLarge, number(0x1.62e42fefa39efp-1), number(0)));
}

/// log (x + √(x² + 1)) = log1p (x + x² / (1 + √(1 + x²))) for |x|. The argument's error of 1.3 ulp is at most 1.3 ulp
/// of the logarithm.
Value MathFunctions::asinh(Value x) {
  Value size = magnitude(x), square = multiply(x, x);
  Value root = emit.make<math::SqrtOp>(add(square, number(1)));
  Value argument = add(size, divide(square, add(root, number(1))));
  return withSign(logOfSum(size, argument), x);
}

/// log (x + √(x² − 1)) = log1p (t + √(2t + t²)), t = x − 1.
Value MathFunctions::acosh(Value x) {
  Value t = subtract(x, number(1)), root = emit.make<math::SqrtOp>(fma(t, t, add(t, t)));
  return emit.select(less(x, 1), number(NAN), logOfSum(x, add(t, root)));
}

/// ½ · log1p (2x / (1 − x)) for |x|: infinite at 1, and NaN beyond, the logarithm of a negative number.
Value MathFunctions::atanh(Value x) {
  Value size = magnitude(x), argument = divide(add(size, size), subtract(number(1), size));
  return withSign(multiply(log1p(argument), number(0.5)), x);
}

} // namespace kiln::lowering

// pow, log10 and cbrt in arithmetic.
//
// A power needs a logarithm with more digits than a float has, because it is multiplied by up to 2^7 (f64: 2^10) before
// its fraction is used. So numbers are sums of two floats, of which the second is the rounding error of the first.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

MathFunctions::Pair MathFunctions::exactSum(Value larger, Value smaller) {
  Value sum = add(larger, smaller);
  return {sum, add(subtract(larger, sum), smaller)};
}

MathFunctions::Pair MathFunctions::exactProduct(Value a, Value b) {
  Value product = multiply(a, b);
  return {product, fma(a, b, negated(product))};
}

// Polynomials in z of (log2 (1 + t) / s − 2/ln 2 · (1 + z/3)) / z², with s = t / (2 + t) and z = s², for z up to
// 0.0295. Their errors, relative to the logarithm, are 2^-35 in f32 and 2^-65 in f64. They were fitted by least
// squares, reweighted towards a minimax, as all polynomials below.
static const double logTerms32[] = {0x1.589c96p-2, 0x1.a5cfb0p-2, 0x1.2776e0p-1};
static const double logTerms64[] = {0x1.62416edfbbb4cp-3, 0x1.58f225d41e47ap-3, 0x1.8a0a4d65b8318p-3,
                                    0x1.c68ee4fb68ee7p-3, 0x1.0c9a85446e0b2p-2, 0x1.484b13d695a5bp-2,
                                    0x1.a61762a7aefbap-2, 0x1.2776c50ef9bfcp-1};

/// n + s · (2/ln 2 · (1 + z/3) + z² · Q(z)). The rounding error of each sum is computed by an fma of the same factors
/// and the difference of the sum's larger term and the sum, which is exact. In f32 the coefficient of z is one float;
/// half an ulp of it is 2^-31.6 of the sum. In f64 it is two floats, so that only Q is computed in one float. The
/// relative error of the logarithm is then 2^-63.
MathFunctions::Pair MathFunctions::log2InTwo(Value x) {
  const auto [n, t] = reduce(x);
  const auto constant = [&](double narrow, double high) { return number(wide ? high : narrow); };
  Value inverse = divide(number(1), add(number(2), t)), s = multiply(t, inverse), twice = add(s, s);
  Value sLow = multiply(fma(negated(s), t, subtract(t, twice)), inverse);
  Value z = multiply(s, s), zLow = fma(twice, sLow, fma(s, s, negated(z)));
  Value q = polynomial(z, wide ? ArrayRef<double>(logTerms64) : ArrayRef<double>(logTerms32));
  Value first = constant(0x1.ec709ep-1, 0x1.ec709dc3a03fdp-1), third = fma(z, q, first);
  Value start = constant(0x1.715476p+1, 0x1.71547652b82fep+1), slope = fma(z, third, start);
  Value slopeLow = fma(zLow, third, fma(z, third, subtract(start, slope)));
  slopeLow = add(slopeLow, constant(0x1.4ae0c0p-25, 0x1.777d0ffda0d24p-55));
  if (wide)
    slopeLow = fma(z, add(fma(z, q, subtract(first, third)), number(0x1.d27f05548af0cp-55)), slopeLow);
  Value sum = fma(s, slope, n), low = fma(s, slope, subtract(n, sum));
  return {sum, fma(s, slopeLow, fma(sLow, slope, low))};
}

/// 2^(y · log2 |x|), with the sign of x if y is an odd integer, and the special cases of annex F of the C standard. In
/// f32 the logarithm's error is at most 0.4 ulp of the power, the rounding of y times its low part 0.1, and the power
/// of two 1.1: 1.6 ulp. Positive numbers whose powers are near neither 0 nor infinity are no special case.
Value MathFunctions::pow(Value x, Value y) {
  using F = arith::CmpFPredicate;
  Value size = magnitude(x);
  const Pair log = log2InTwo(size);
  Pair exponent = exactProduct(y, log.high);
  exponent.low = fma(y, log.low, exponent.low);
  Value near = normalExp2OfTwo(exponent);
  Value isFar = emit.compare(F::UGE, magnitude(exponent.high), number(wide ? 1020 : 124)); // or NaN
  Value below = emit.make<arith::SubIOp>(emit.bits(x, getElementTypeOrSelf(words)), word(1));
  Value isCase = emit.compare(arith::CmpIPredicate::uge, below, word(wide ? 0x7FEFFFFFFFFFFFFF : 0x7F7FFFFF));
  Value power = rarely(emit.make<arith::OrIOp>(isCase, isFar), near, [&] {
                  Value any = rarely(isFar, near, [&] { return SmallVector<Value>{exp2OfTwo(exponent)}; }).front();
                  return SmallVector<Value>{caseOfPow(x, y, any)};
                }).front();
  return emit.select(emit.compare(F::OEQ, y, number(1)), x, power);
}

/// The special cases of x^y in annex F of C, except y = 1. `power` is |x|^y.
Value MathFunctions::caseOfPow(Value x, Value y, Value power) {
  using F = arith::CmpFPredicate;
  const auto both = [&](Value a, Value b) { return emit.make<arith::AndIOp>(a, b); };
  const auto either = [&](Value a, Value b) { return emit.make<arith::OrIOp>(a, b); };
  const auto differ = [&](Value a, Value b) { return emit.make<arith::XOrIOp>(a, b); };
  Value zero = number(0), one = number(1), inf = number(INFINITY), size = magnitude(x);

  Value isZero = emit.compare(F::OEQ, x, zero), isInfinite = emit.compare(F::OEQ, size, inf);
  Value atEnd = emit.select(differ(isZero, emit.compare(F::OLT, y, zero)), zero, inf);
  power = emit.select(either(isZero, isInfinite), atEnd, power);

  Value half = multiply(y, number(0.5));
  Value whole = emit.make<math::TruncOp>(y);
  Value isOdd = both(emit.compare(F::OEQ, whole, y), emit.compare(F::UNE, emit.make<math::TruncOp>(half), half));
  power = emit.select(isOdd, withSign(power, x), power);
  Value isRoot = both(emit.compare(F::OLT, x, zero), emit.compare(F::UNE, whole, y)); // root of a negative number
  Value wrong = either(both(isRoot, emit.compare(F::OLT, size, inf)), emit.compare(F::UNO, x, y));
  Value isOne = either(emit.compare(F::OEQ, x, one), emit.compare(F::OEQ, y, zero));
  isOne = either(isOne, both(emit.compare(F::OEQ, size, one), emit.compare(F::OEQ, magnitude(y), inf)));
  return emit.select(isOne, one, emit.select(wrong, number(NAN), power));
}

/// The logarithm to base 2, in two floats, times log10 2: exact powers of ten have exact logarithms.
Value MathFunctions::log10(Value x) {
  const Pair log = log2InTwo(x);
  Value factor = number(wide ? 0x1.34413509f79ffp-2 : 0x1.344136p-2);
  const Pair product = exactProduct(log.high, factor);
  Value low = fma(log.high, number(wide ? -0x1.9dc1da994fd21p-59 : -0x1.ec10c0p-27), fma(log.low, factor, product.low));
  return atEndsOfLog(x, add(product.high, low));
}

/// y begins with an estimate from a third of the word of x, with e = 0.1 at most. Steps y · (1 + e/3 + 2e²/9), with
/// e = 1 − x · y³, converge to x^(−1/3); each leaves an error of 14/81 · e³. Then the root is x · y², corrected by the
/// difference of x and its cube: hardly more than 0.5 ulp, except for a denormal argument.
Value MathFunctions::cbrt(Value x) {
  Value size = magnitude(x), denormal = less(size, wide ? 0x1p-1022 : 0x1p-126);
  Value normal = emit.select(denormal, multiply(size, number(wide ? 0x1p54 : 0x1p24)), size);
  Value upper = emit.make<arith::ShRUIOp>(emit.bits(normal, getElementTypeOrSelf(words)), word(wide ? 32 : 16));
  Value third = emit.make<arith::MulIOp>(upper, word(wide ? 0x55555556 : 0x5556));
  Value y = emit.bits(emit.make<arith::SubIOp>(word(wide ? 0x553eee4feaaaaaab : 0x54a21d2a), third),
                      getElementTypeOrSelf(type));
  for (int step = 0; step < (wide ? 3 : 2); ++step) {
    Value lacks = fma(negated(multiply(multiply(normal, y), y)), y, number(1));
    y = fma(multiply(y, lacks), fma(lacks, number(2.0 / 9), number(1.0 / 3)), y);
  }
  Value square = multiply(y, y), root = multiply(normal, square);
  const Pair cube = exactProduct(root, root);
  Value lacks = fma(negated(cube.low), root, fma(negated(cube.high), root, normal));
  root = fma(multiply(lacks, square), number(1.0 / 3), root);
  root = emit.select(denormal, multiply(root, number(wide ? 0x1p-18 : 0x1p-8)), root);
  Value isOwn = emit.make<arith::OrIOp>(emit.compare(arith::CmpFPredicate::OEQ, x, number(0)),
                                        emit.compare(arith::CmpFPredicate::UGE, size, number(INFINITY)));
  return emit.select(isOwn, x, withSign(root, x));
}

} // namespace kiln::lowering

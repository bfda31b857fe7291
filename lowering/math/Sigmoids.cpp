// tanh, erf, erfc, sinh, cosh and the inverses of hyperbolic functions in arithmetic.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

// --- tanh, erf and erfc ----------------------------------------------------------------------------------------------

Value MathFunctions::tanh(Value x) { return wide ? tanh64(x) : tanh32(x); }
Value MathFunctions::erf(Value x) { return wide ? erf64(x) : erf32(x); }

/// E / (E + 2) with E = e^2|x| − 1 = 2ⁿ · (e^r − 1) + (2ⁿ − 1), without cancellation. n is the integer nearest to
/// 2|x| / ln 2 and not negative; from |x| = 9.02 on, the result rounds to 1. The error is largest where n becomes 1, at
/// |x| = 0.1733, in ulp of the result: r and the steps to E 2.1, E + 2 0.6, the quotient 0.5, the polynomial 0.2; 3.4
/// ulp. Below, where E = e^r − 1, it is at most 2.7 ulp, and 2.0 ulp near a result of 1.
Value MathFunctions::tanh32(Value x) {
  Value size = atMost(magnitude(x), 10);
  Rounded n = round(size, number(0x1.715476p1));
  Value r = reduceByLn2(add(size, size), n.integer);
  Value near = lessOne(r);
  Value exponent = emit.make<arith::ShLIOp>(emit.bits(n.carrier, getElementTypeOrSelf(words)), word(23));
  Value power = emit.bits(emit.make<arith::AddIOp>(exponent, word(0x3F800000)), getElementTypeOrSelf(type)); // 2ⁿ
  Value less1 = fma(power, near, subtract(power, number(1)));
  return withSign(divide(less1, add(less1, number(2))), x);
}

/// Cephes' rational function for |x| below 0.625; otherwise 1 − 2 / (e^2|x| + 1).
Value MathFunctions::tanh64(Value x) {
  Value z = multiply(x, x), size = magnitude(x);
  Value p = polynomial(z, {-9.64399179425052238628E-1, -9.92877231001918586564E1, -1.61468768441708447952E3});
  Value q = polynomial(z, {1, 1.12811678491632931402E2, 2.23548839060100448583E3, 4.84406305325125486048E3});
  Value near = fma(multiply(x, z), divide(p, q), x);
  Value power = exp(add(size, size));
  Value far = subtract(number(1), divide(number(2), add(power, number(1))));
  return withSign(emit.select(less(size, 0.625), near, far), x); // also for −0, where `near` is +0
}

static const double erfTerms32[] = {-5.96761703e-4, 4.99119423e-3,  -2.67681349e-2,
                                    1.12819925e-1,  -3.76125336e-1, 1.28379166e-1};

/// A polynomial in x² near 0, and 1 − e^q(|x|) beyond: N. Juffa's minimax polynomials for erff. The errors are at most
/// 1.2 ulp near 0 (polynomial 0.36), and 1.7 ulp beyond, at 0.955: the exponential, a fifth of the result, and its
/// argument contribute 0.9, the polynomial 0.3, the last rounding 0.5.
Value MathFunctions::erf32(Value x) {
  Value size = atMost(magnitude(x), 4), square = multiply(x, x);
  Value near = fma(polynomial(square, erfTerms32), x, x);
  Value exponent = polynomial(size, {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
                                     -6.34846687e-1, -1.28717512e-1});
  exponent = subtract(multiply(exponent, size), size);
  Value far = withSign(subtract(number(1), exp(exponent)), x);
  Value isFar = emit.compare(arith::CmpFPredicate::OGT, magnitude(x), number(0.921875));
  return emit.select(isFar, far, near);
}

/// Cephes' rational functions: x · T(x²) / U(x²) up to 1.
Value MathFunctions::erfNear64(Value x) {
  Value z = multiply(x, x);
  Value t = polynomial(z, {9.60497373987051638749E0, 9.00260197203842689217E1, 2.23200534594684319226E3,
                           7.00332514112805075473E3, 5.55923013010394962768E4});
  Value u = polynomial(z, {1, 3.35617141647503099647E1, 5.21357949780152679795E2, 4.59432382970980127987E3,
                           2.26290000613890934246E4, 4.92673942608635921086E4});
  return divide(multiply(x, t), u);
}

/// erfNear64 up to 1, and Cephes' 1 − e^(−x²) · P(|x|) / Q(|x|) beyond.
Value MathFunctions::erf64(Value x) {
  Value size = atMost(magnitude(x), 6.5), near = erfNear64(x);
  Value p = polynomial(size, {2.46196981473530512524E-10, 5.64189564831068821977E-1, 7.46321056442269912687E0,
                              4.86371970985681366614E1, 1.96520832956077098242E2, 5.26445194995477358631E2,
                              9.34528527171957607540E2, 1.02755188689515710272E3, 5.57535335369399327526E2});
  Value q = polynomial(size, {1, 1.32281951154744992508E1, 8.67072140885989742329E1, 3.54937778887819891062E2,
                              9.75708501743205489753E2, 1.82390916687909736289E3, 2.24633760818710981792E3,
                              1.65666309194161350182E3, 5.57535340817727675546E2});
  Value tail = multiply(exp(multiply(multiply(size, size), number(-1))), divide(p, q));
  Value far = withSign(subtract(number(1), tail), x);
  Value isFar = emit.compare(arith::CmpFPredicate::OGT, magnitude(x), number(1));
  return emit.select(isFar, far, near);
}

// Polynomials of (1 + 2x) · e^x² · erfc x in u = (x − k) / (x + k), with k = 3 in f32 and 4 in f64, for x up to 10.1
// and 27.5 (the form of Shepherd and Laframboise, Math. Comp. 36, 1981). Their relative errors are 2^-24.1 in f32 and
// 2^-53.9 in f64.
static const double erfcTerms32[] = {-0x1.36ab02p-13, 0x1.285eaep-9, 0x1.22bf24p-9,  -0x1.89e8fap-6, 0x1.17fa5ap-4,
                                     -0x1.e84ca0p-4,  0x1.09827ap-3, -0x1.85aacap-5, -0x1.15c084p-3, 0x1.40c524p+0};
static const double erfcTerms64[] = {
    -0x1.e8b445e11d6e6p-30, -0x1.d28c83b43b25ap-27, -0x1.0ccc4faddb3a9p-27, 0x1.edec5c5a9f5fcp-24,
    0x1.0d83739d64485p-24,  -0x1.c0169c881b317p-21, 0x1.43b003b31c61ap-22,  0x1.7fb105976ece6p-18,
    -0x1.78a588f0ac544p-17, -0x1.9969e2836285ap-16, 0x1.3be0c07261a4ep-13,  -0x1.a1de8590b25dbp-13,
    -0x1.8d4a9ed322873p-11, 0x1.49c671973c897p-8,   -0x1.09623881c2711p-6,  0x1.3079edf9dc25bp-5,
    -0x1.0fb06dfe51da4p-4,  0x1.7fee004df7d83p-4,   -0x1.9ddb23c3e8f11p-4,  0x1.16ecefcfa5fa0p-4,
    0x1.f7f5df66fd7c3p-7,   -0x1.1df1ad154a29bp-3,  0x1.3ba5916e9fd7fp+0};

/// 1 − erf x for |x| up to 1/2. Beyond, e^−x², with the square in two floats, times the polynomial over 1 + 2|x|; for
/// negative x, 2 minus that. In f32 the error of the power is 1.1 ulp, of the polynomial 0.8, and its argument, the
/// quotient and the product round by 0.5 each: 3.4 ulp.
Value MathFunctions::erfc(Value x) {
  Value size = atMost(magnitude(x), wide ? 28 : 10.5); // beyond, the result rounds to 0
  const Pair square = exactProduct(size, size);
  Value factor = number(wide ? -0x1.71547652b82fep+0 : -0x1.715476p+0); // −log2 e
  Pair exponent = exactProduct(square.high, factor);
  Value small = fma(square.high, number(wide ? -0x1.777d0ffda0d24p-56 : -0x1.4ae0c0p-26), multiply(square.low, factor));
  exponent.low = add(exponent.low, small);
  Value centre = number(wide ? 4 : 3), u = divide(subtract(size, centre), add(size, centre));
  Value shape = polynomial(u, wide ? ArrayRef<double>(erfcTerms64) : ArrayRef<double>(erfcTerms32));
  const Pair below = exactSum(add(size, size), number(1)); // valid for |x| from 1/2 on
  Value inverse = divide(number(1), below.high), quotient = multiply(shape, inverse), minus = negated(quotient);
  Value rest = fma(minus, below.low, fma(minus, below.high, shape));
  Value right = multiply(exp2OfTwo(exponent), fma(rest, inverse, quotient));
  Value far = emit.select(less(x, 0), subtract(number(2), right), right);
  Value near = subtract(number(1), wide ? erfNear64(x) : fma(polynomial(multiply(x, x), erfTerms32), x, x));
  return emit.select(less(magnitude(x), 0.5), near, far);
}

// --- sinh, cosh and their inverses -----------------------------------------------------------------------------------

// sinh, cosh and their inverses in arithmetic, from a power in two floats and log1p.

/// e^x / 2 for x ≥ 0, which overflows where sinh and cosh do. The error is a little more than an ulp.
Value MathFunctions::halfOfExp(Value x) {
  Pair exponent = exactProduct(x, number(wide ? 0x1.71547652b82fep+0 : 0x1.715476p+0)); // log2 e
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

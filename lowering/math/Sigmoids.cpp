// tanh and erf in arithmetic.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace kiln::lowering {

Value MathFunctions::tanh(Value x) { return wide ? tanh64(x) : tanh32(x); }
Value MathFunctions::erf(Value x) { return wide ? erf64(x) : erf32(x); }

/// E / (E + 2) with E = e^2|x| − 1 = 2ⁿ · (e^r − 1) + (2ⁿ − 1), which loses nothing by cancellation. n is the integer
/// nearest to 2|x| / ln 2 and never negative; from |x| = 9.02 on the result rounds to 1. The error is largest where n
/// becomes 1, at |x| = 0.1733: r and the steps to E 2.1 ulp of the result, E + 2 0.6, the quotient 0.5, the polynomial
/// 0.2; 3.4 ulp. Below, where E = e^r − 1, it is at most 2.7, and 2.0 towards 1.
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

/// Below 0.625 Cephes' rational function, above it 1 − 2 / (e^2x + 1).
Value MathFunctions::tanh64(Value x) {
  Value z = multiply(x, x), size = magnitude(x);
  Value p = polynomial(z, {-9.64399179425052238628E-1, -9.92877231001918586564E1, -1.61468768441708447952E3});
  Value q = polynomial(z, {1, 1.12811678491632931402E2, 2.23548839060100448583E3, 4.84406305325125486048E3});
  Value near = fma(multiply(x, z), divide(p, q), x);
  Value power = exp(add(size, size));
  Value far = subtract(number(1), divide(number(2), add(power, number(1))));
  return withSign(emit.select(less(size, 0.625), near, far), x); // also of −0, where `near` is +0
}

/// Near 0 a polynomial in x², further out 1 − e^q(|x|): N. Juffa's minimax polynomials for erff.
/// The errors are at most 1.2 ulp near 0 (polynomial 0.36) and 1.7 further out, at 0.955: the exponential, a fifth of
/// the result, and its argument give 0.9, the polynomial 0.3, the last rounding 0.5.
Value MathFunctions::erf32(Value x) {
  Value size = atMost(magnitude(x), 4), square = multiply(x, x);
  Value near =
      polynomial(square, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  near = fma(near, x, x);
  Value exponent = polynomial(size, {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
                                     -6.34846687e-1, -1.28717512e-1});
  exponent = subtract(multiply(exponent, size), size);
  Value far = withSign(subtract(number(1), exp(exponent)), x);
  Value isFar = emit.compare(arith::CmpFPredicate::OGT, magnitude(x), number(0.921875));
  return emit.select(isFar, far, near);
}

/// Cephes' rational functions: x · T(x²) / U(x²) up to 1, then 1 − e^(−x²) · P(|x|) / Q(|x|).
Value MathFunctions::erf64(Value x) {
  Value z = multiply(x, x), size = atMost(magnitude(x), 6.5);
  Value t = polynomial(z, {9.60497373987051638749E0, 9.00260197203842689217E1, 2.23200534594684319226E3,
                           7.00332514112805075473E3, 5.55923013010394962768E4});
  Value u = polynomial(z, {1, 3.35617141647503099647E1, 5.21357949780152679795E2, 4.59432382970980127987E3,
                           2.26290000613890934246E4, 4.92673942608635921086E4});
  Value near = divide(multiply(x, t), u);
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

} // namespace kiln::lowering

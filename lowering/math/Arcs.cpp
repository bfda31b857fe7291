// atan, atan2, asin and acos in arithmetic.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

// Three polynomials in z: of (atan √z / √z − 1) / z for z up to 1, of the same function for z up to 0.1915, and of
// (asin √z / √z − 1) / z for z up to 1/4. Their errors, relative to the arc, are 2^-28.5, 2^-29.5 and 2^-31.7 in f32,
// and 2^-56.3, 2^-58.6 and 2^-58.5 in f64.
static const double atanTerms32[] = {-0x1.d5462ap-10, 0x1.65202ep-7,  -0x1.fe509ep-6, 0x1.da8704p-5, -0x1.58203cp-4,
                                     0x1.c092b2p-4,   -0x1.2420f8p-3, 0x1.9991eap-3,  -0x1.55553ep-2};
static const double atanTerms64[] = {
    -0x1.2242bb827c9bfp-17, 0x1.b380e300525b0p-14, -0x1.36be9235522b7p-11, 0x1.19ef78b04651fp-9,  -0x1.6fbb7f1227e36p-8,
    0x1.72cb76bfdfc82p-7,   -0x1.30f0680ab7a45p-6, 0x1.ac6fc87c801c6p-6,   -0x1.0c91204e48706p-5, 0x1.3902b481bc925p-5,
    -0x1.5f236e20ca795p-5,  0x1.84b41233ee100p-5,  -0x1.aeda4180b5a02p-5,  0x1.e1d483b4b62d2p-5,  -0x1.111032251879fp-4,
    0x1.3b139bc6dbcf5p-4,   -0x1.745d15cf8f682p-4, 0x1.c71c71b6202e2p-4,   -0x1.2492492456851p-3, 0x1.9999999998c1dp-3,
    -0x1.555555555554dp-2};
static const double nearTerms32[] = {-0x1.dd43acp-5, 0x1.add89ep-4, -0x1.236f3ep-3, 0x1.998dfap-3, -0x1.555542p-2};
static const double nearTerms64[] = {0x1.c02273fa412fep-7,  -0x1.054d830039b01p-5, 0x1.6b12a87c5d5d8p-5,
                                     -0x1.a9f825de51a26p-5, 0x1.e132083ad1111p-5,  -0x1.1108fd922ecdfp-4,
                                     0x1.3b132ea6849f4p-4,  -0x1.745d11bed24acp-4, 0x1.c71c71a0d871ep-4,
                                     -0x1.249249244477dp-3, 0x1.9999999998fa9p-3,  -0x1.5555555555552p-2};
static const double asinTerms32[] = {0x1.33cca4p-5, 0x1.d7a396p-7, 0x1.04ae68p-5,
                                     0x1.6caac2p-5, 0x1.33389ep-4, 0x1.55554cp-3};
static const double asinTerms64[] = {
    0x1.0b4ab62d90747p-5, -0x1.580b538fba905p-6, 0x1.63a72bf6190d4p-6, 0x1.e5ce9322c9442p-9, 0x1.613f6c172a431p-7,
    0x1.7584f5c872babp-7, 0x1.ca1fa2143fdecp-7,  0x1.1c49ef5cc3db1p-6, 0x1.6e8bdef130e51p-6, 0x1.f1c71a94368afp-6,
    0x1.6db6db7214e79p-5, 0x1.333333332e0e9p-4,  0x1.5555555555577p-3};

/// π/2 in two floats.
MathFunctions::Pair MathFunctions::halfPi() {
  return {number(wide ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0), number(wide ? 0x1.1a62633145c07p-54 : -0x1.777a5cp-25)};
}

/// atan q − q for 0 ≤ q ≤ 1.
Value MathFunctions::bendOfAtan(Value q) {
  Value z = multiply(q, q);
  return multiply(multiply(q, z), polynomial(z, wide ? ArrayRef<double>(atanTerms64) : ArrayRef<double>(atanTerms32)));
}

/// atan a + atan ((x − a) / (1 + a · x)). The second argument is a quotient p / q with p = p₁ x + p₀ and q = q₁ x + q₀.
/// The coefficients are those of the largest limit below |x|, so that |p / q| ≤ 7/16. The quotient's error of 1.5 ulp
/// is at most a quarter of that in ulp of the result; the polynomial adds 0.1 and the sums 0.7.
Value MathFunctions::atan(Value x) {
  static const struct {
    double limit, p[2], q[2], high32, low32, high64, low64;
  } nodes[] = {
      {0.4375, {2, -1}, {1, 2}, 0x1.dac67p-2, 0x1.586ed4p-28, 0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
      {0.6875, {1, -1}, {1, 1}, 0x1.921fb6p-1, -0x1.777a5cp-26, 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
      {1.1875, {1, -1.5}, {1.5, 1}, 0x1.f730bep-1, -0x1.afc12cp-26, 0x1.f730bd281f69bp-1, 0x1.007887af0cbbdp-56},
      {2.4375, {0, -1}, {1, 0}, 0x1.921fb6p+0, -0x1.777a5cp-25, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}};
  Value size = atMost(magnitude(x), 0x1p60);
  Value chosen[] = {number(1), number(0), number(0), number(1), number(0), number(0)}; // p, q, and atan a in two parts
  for (const auto &node : nodes) {
    Value isAbove = above(size, node.limit);
    const double next[] = {
        node.p[0], node.p[1], node.q[0], node.q[1], wide ? node.high64 : node.high32, wide ? node.low64 : node.low32};
    for (const auto &[value, constant] : llvm::zip_equal(chosen, next))
      value = emit.select(isAbove, number(constant), value);
  }
  const auto [p1, p0, q1, q0, high, low] = chosen;
  Value q = divide(fma(size, p1, p0), fma(size, q1, q0)), z = multiply(q, q);
  Value bend = polynomial(z, wide ? ArrayRef<double>(nearTerms64) : ArrayRef<double>(nearTerms32));
  return withSign(add(high, add(q, fma(multiply(q, z), bend, low))), x);
}

/// The angle of (x, y): atan q, where q is the smaller of |y| and |x| over the larger one, moved to the octant of (x,
/// y). The error is half an ulp of the quotient, another half of the arc, and the rounding of the sum.
Value MathFunctions::atan2(Value y, Value x) {
  using F = arith::CmpFPredicate;
  Value height = magnitude(y), width = magnitude(x);
  Value steep = emit.compare(F::OGT, height, width);
  Value small = emit.select(steep, width, height), large = emit.select(steep, height, width);
  Value q = divide(small, large);
  q = emit.select(emit.compare(F::OEQ, small, large), number(1), q);     // also if both are infinite
  q = emit.select(emit.compare(F::OEQ, small, number(0)), number(0), q); // also if both are 0
  Value arc = add(q, bendOfAtan(q));

  Value backward = emit.compare(arith::CmpIPredicate::slt, emit.bits(x, getElementTypeOrSelf(words)), word(0));
  const Pair quarter = halfPi();
  const auto start = [&](Value part) {
    return emit.select(steep, part, emit.select(backward, add(part, part), number(0)));
  };
  arc = emit.select(emit.make<arith::XOrIOp>(steep, backward), negated(arc), arc);
  Value angle = add(start(quarter.high), add(start(quarter.low), arc));
  return emit.select(emit.compare(F::UNO, x, y), number(NAN), withSign(angle, y));
}

/// s and asin s − s, where s is |x| up to 1/2, and √((1 − |x|) / 2) beyond; there acos |x| is 2 asin s.
MathFunctions::Pair MathFunctions::smallArc(Value x, Value isFar) {
  Value size = magnitude(x);
  Value z = emit.select(isFar, fma(size, number(-0.5), number(0.5)), multiply(x, x));
  Value s = emit.select(isFar, emit.make<math::SqrtOp>(z), size);
  Value p = polynomial(z, wide ? ArrayRef<double>(asinTerms64) : ArrayRef<double>(asinTerms32));
  return {s, multiply(multiply(s, z), p)};
}

/// For |x| above 1/2, π/2 − 2 · arc. Half an ulp of the root is 1 ulp of a result with a lower exponent; the sum rounds
/// by 0.5, and its smaller part by 0.3.
Value MathFunctions::asin(Value x) {
  Value isFar = above(magnitude(x), 0.5);
  const Pair arc = smallArc(x, isFar), quarter = halfPi();
  Value rest = fma(number(-2), arc.high, quarter.high);
  Value error = add(fma(number(-2), arc.high, subtract(quarter.high, rest)), quarter.low);
  Value far = add(rest, fma(number(-2), arc.low, error));
  return withSign(emit.select(isFar, far, add(arc.high, arc.low)), x);
}

/// For |x| up to 1/2, π/2 − asin x; beyond, 2 · arc, or π − 2 · arc for negative x.
Value MathFunctions::acos(Value x) {
  Value isFar = above(magnitude(x), 0.5);
  const Pair arc = smallArc(x, isFar), quarter = halfPi();
  Value whole = add(arc.high, arc.low), twice = add(whole, whole);
  Value high = emit.select(isFar, add(quarter.high, quarter.high), quarter.high);
  Value low = emit.select(isFar, add(quarter.low, quarter.low), quarter.low);
  Value part = emit.select(isFar, twice, withSign(whole, x));
  Value complement = add(subtract(high, part), low);
  Value forward = emit.compare(arith::CmpFPredicate::OGT, x, number(0));
  return emit.select(emit.make<arith::AndIOp>(isFar, forward), twice, complement);
}

} // namespace kiln::lowering

// exp2, exp, log2, log and rsqrt in arithmetic; tanh and erf are in Sigmoids.cpp.
//
// Rounding to an integer adds 1.5 · 2^23 (2^52 in f64), which leaves the integer in the low bits of the sum. From there
// it can be added to an exponent, without a conversion that could be out of range.

#include "lowering/math/MathFunctions.h"

#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

MathFunctions::MathFunctions(OpBuilder &builder, Location loc, Type type, Scale scale)
    : emit(builder, loc), builder(builder), loc(loc), type(type), wide(getElementTypeOrSelf(type).isF64()),
      scale(scale) {
  words = typeLike(type, builder.getIntegerType(wide ? 64 : 32));
}

Value MathFunctions::fma(Value a, Value b, Value c) { return emit.make<math::FmaOp>(a, b, c); }
Value MathFunctions::negated(Value x) { return emit.make<arith::NegFOp>(x); }
Value MathFunctions::magnitude(Value x) { return emit.make<math::AbsFOp>(x); }
Value MathFunctions::withSign(Value x, Value sign) { return emit.make<math::CopySignOp>(x, sign); }

Value MathFunctions::atMost(Value x, double bound) {
  Value limit = number(bound);
  return emit.select(emit.compare(arith::CmpFPredicate::OGT, x, limit), limit, x);
}

Value MathFunctions::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = number(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    result = fma(result, x, number(coefficient));
  return result;
}

// --- Powers ----------------------------------------------------------------------------------------------------------

/// The integer nearest to x · factor, or to x without a factor.
MathFunctions::Rounded MathFunctions::round(Value x, Value factor) {
  Value magic = number(wide ? 0x1.8p52 : 0x1.8p23);
  Value carrier = factor ? fma(x, factor, magic) : add(x, magic);
  return {subtract(carrier, magic), carrier};
}

/// x − n · ln 2, with ln 2 in two parts; the first has so few bits that its product is exact.
Value MathFunctions::reduceByLn2(Value x, Value n) {
  Value remainder = fma(n, number(wide ? -6.93147180369123816490e-01 : -0x1.62e4p-1), x);
  return fma(n, number(wide ? -1.90821492927058770002e-10 : -0x1.7f7d1cp-20), remainder);
}

/// 2 · half · 2ⁿ. For x below `smallBelow` the result may be denormal: there the exponent is too high by a margin, and
/// a last product removes the margin and rounds. Because of the factor 2 the largest results do not overflow before
/// that product.
Value MathFunctions::powerOfTwo(Value half, Rounded n, Value x, double smallBelow) {
  Value small = less(x, smallBelow);
  int margin = wide ? 64 : 32;
  Value integer = emit.bits(n.carrier, getElementTypeOrSelf(words));
  integer = emit.select(small, emit.make<arith::AddIOp>(integer, word(margin)), integer);
  Value exponent = emit.make<arith::ShLIOp>(integer, word(wide ? 52 : 23));
  Value bits = emit.make<arith::AddIOp>(emit.bits(half, getElementTypeOrSelf(words)), exponent);
  Value last = emit.select(small, number(std::ldexp(2.0, -margin)), number(2));
  last = fma(x, number(0), last); // restores NaN, whose exponent the addition may have changed
  return multiply(emit.bits(bits, getElementTypeOrSelf(type)), last);
}

/// 1 + r · polynomial(r), or half of it, which is equally exact.
Value MathFunctions::nearPower(Value r, ArrayRef<double> coefficients, bool half) {
  SmallVector<double> terms(coefficients);
  terms.push_back(1);
  if (half)
    for (double &term : terms)
      term /= 2;
  return polynomial(r, terms);
}

// Minimax polynomials, by Remez' exchange with the last term fixed to 1; the f32 ones then searched for the
// coefficients in f32 with the least largest error.
static const double exp2Terms32[] = {0x1.5b992cp-10, 0x1.3cea92p-7, 0x1.c6b828p-5, 0x1.ebf9c2p-3, 0x1.62e428p-1};
static const double expTerms32[] = {0x1.0fdbbap-7, 0x1.573938p-5, 0x1.555a56p-3, 0x1.fffddp-2, 0x1.fffff6p-1};
static const double exp2Terms64[] = {4.4347766972044523765e-10, 7.0737830248798114595e-9,   1.0178199536639194505e-7,
                                     1.3215435283619670926e-6,  0.000015252733493210066587, 0.00015403530457109485148,
                                     0.0013333558146774536843,  0.0096181291075941221027,   0.055504108664820083564,
                                     0.24022650695910131255,    0.6931471805599453258};
static const double expTerms64[] = {2.0495067957387501189e-9, 2.5105770172466587774e-8,   2.7558666030778612007e-7,
                                    2.7557254501068797263e-6, 0.000024801585661832685803, 0.00019841269875197474174,
                                    0.001388888888974400837,  0.0083333333333260161902,   0.04166666666666485003,
                                    0.16666666666666671403,   0.5000000000000000114,      1};

// As above, for (e^r − 1 − r) / r² over |r| ≤ ln 2 / 2: the relative error of e^r − 1 is 0.23 · 2^-24.
static const double expm1Terms32[] = {0x1.6b9c76p-10, 0x1.12254cp-7, 0x1.5556f2p-5, 0x1.5554b4p-3, 0x1.fffffep-2};

/// e^r − 1 = r + r² · q(r).
Value MathFunctions::lessOne(Value r) {
  Value q = polynomial(r, wide ? ArrayRef<double>(expTerms64).drop_back() : ArrayRef<double>(expm1Terms32));
  return fma(q, multiply(r, r), r);
}

/// 2^x = 2ⁿ · 2^f with n the nearest integer and |f| ≤ 1/2, which is exact. In f32 the error is largest at f = −1/2,
/// where an ulp is 2^-24: polynomial 1.17, Horner's steps before the last one 0.29, the last one 0.5; 2.0 ulp. A
/// denormal result has half of that error in its own ulp, and another half.
Value MathFunctions::exp2(Value x) {
  ArrayRef<double> terms = wide ? ArrayRef<double>(exp2Terms64) : ArrayRef<double>(exp2Terms32);
  if (scale) { // handles NaN · 2^±inf, which x = ±inf leads to
    Value n = emit.make<math::RoundEvenOp>(x);
    return scale(nearPower(subtract(x, n), terms, /*half=*/false), n, {});
  }
  Value keep = above(x, wide ? -1075 : -150); // below, the result rounds to 0
  x = atMost(emit.select(keep, x, number(0)), wide ? 1024.5 : 128.5);
  Rounded n = round(x, {});
  Value power = powerOfTwo(nearPower(subtract(x, n.integer), terms, /*half=*/true), n, x, wide ? -1020 : -124);
  return emit.select(keep, power, number(0));
}

/// e^x = 2ⁿ · e^r with n the integer nearest to x / ln 2. In f32 the error is largest at r = −ln 2 / 2, where an
/// ulp of e^r is 2^-24: polynomial 1.28, the rounding of r and Horner's steps before the last one 0.46, the last one
/// 0.5; 2.3 ulp.
Value MathFunctions::exp(Value x) {
  ArrayRef<double> terms = wide ? ArrayRef<double>(expTerms64) : ArrayRef<double>(expTerms32);
  Value keep = above(x, wide ? -745.14 : -104); // below, the result rounds to 0
  x = atMost(scale ? x : emit.select(keep, x, number(0)), wide ? 709.9 : 88.8);
  Rounded n = round(x, number(0x1.71547652b82fep0));
  Value remainder = reduceByLn2(x, n.integer);
  if (scale)
    return scale(nearPower(remainder, terms, /*half=*/false), n.integer, keep);
  Value power = powerOfTwo(nearPower(remainder, terms, /*half=*/true), n, x, wide ? -707 : -86);
  return emit.select(keep, power, number(0));
}

// A polynomial of (2^f − 1) / f for |f| up to 1/2; its error, relative to 2^f, is 2^-27.9.
static const double powerTerms32[] = {0x1.3ec3e6p-13, 0x1.5f0ca2p-10, 0x1.3b31fap-7,
                                      0x1.c6af74p-5,  0x1.ebfbd6p-3,  0x1.62e430p-1};

/// In f32 the error is largest at f = −1/2, where an ulp is 2^-24: polynomial 0.1, f and Horner's steps 0.5, the last
/// one 0.5; 1.1 ulp.
Value MathFunctions::exp2OfTwo(Pair x) {
  Value isNear = less(magnitude(x.high), wide ? 2000 : 200); // otherwise x.low may be NaN
  Value low = emit.select(isNear, x.low, number(0));
  Value high = atMost(x.high, wide ? 1024.5 : 128.5);
  high = emit.select(less(high, wide ? -1080 : -153), number(wide ? -1080 : -153), high);
  const Rounded n = scale ? Rounded{emit.make<math::RoundEvenOp>(high), {}} : round(high, {});
  Value f = add(subtract(high, n.integer), low);
  ArrayRef<double> terms = wide ? ArrayRef<double>(exp2Terms64) : ArrayRef<double>(powerTerms32);
  if (scale)
    return scale(nearPower(f, terms, /*half=*/false), n.integer, {});
  return powerOfTwo(nearPower(f, terms, /*half=*/true), n, high, wide ? -1020 : -124);
}

/// As above, for results that are neither denormal nor infinite: n is added to the exponent directly.
Value MathFunctions::normalExp2OfTwo(Pair x) {
  const Rounded n = round(x.high, {});
  Value f = add(subtract(x.high, n.integer), x.low);
  Value near = nearPower(f, wide ? ArrayRef<double>(exp2Terms64) : ArrayRef<double>(powerTerms32), /*half=*/false);
  Value exponent = emit.make<arith::ShLIOp>(emit.bits(n.carrier, getElementTypeOrSelf(words)), word(wide ? 52 : 23));
  Value bits = emit.make<arith::AddIOp>(emit.bits(near, getElementTypeOrSelf(words)), exponent);
  return emit.bits(bits, getElementTypeOrSelf(type));
}

/// 2ⁿ · (e^r − 1) + (2ⁿ − 1), computed as twice its half, so that 2ⁿ does not overflow if the result does not. The
/// rounding errors of r and of the larger part of the sum, 2ⁿ · r + (2ⁿ − 1), are added to the smaller part,
/// 2ⁿ · (e^r − 1 − r). The error in f32: 0.2 ulp for the rounding of that part, 0.2 for the polynomial and 0.5 for the
/// rounding of the sum.
Value MathFunctions::expm1(Value x) {
  Value keep = above(x, wide ? -40 : -20); // below, the result rounds to −1
  Value size = atMost(emit.select(keep, x, number(wide ? -40 : -20)), wide ? 709.9 : 88.8);
  Rounded n = round(size, number(0x1.71547652b82fep0));
  Value first = fma(n.integer, number(wide ? -6.93147180369123816490e-01 : -0x1.62e4p-1), size);
  Value minus = number(wide ? -1.90821492927058770002e-10 : -0x1.7f7d1cp-20), r = fma(n.integer, minus, first);
  Value lost = fma(n.integer, minus, subtract(first, r));
  Value q = polynomial(r, wide ? ArrayRef<double>(expTerms64).drop_back() : ArrayRef<double>(expm1Terms32));
  Value rest = fma(q, multiply(r, r), fma(lost, r, lost));
  Value exponent = emit.make<arith::ShLIOp>(emit.bits(n.carrier, getElementTypeOrSelf(words)), word(wide ? 52 : 23));
  Value half = number(0.5);
  Value power = emit.bits(emit.make<arith::AddIOp>(exponent, emit.bits(half, getElementTypeOrSelf(words))),
                          getElementTypeOrSelf(type)); // 2ⁿ⁻¹
  const Pair start = exactSum(power, number(-0.5));
  Value sum = fma(power, r, start.high), error = add(fma(power, r, subtract(start.high, sum)), start.low);
  Value result = multiply(add(sum, fma(power, rest, error)), number(2));
  return emit.select(less(magnitude(x), wide ? 0x1p-54 : 0x1p-25), x, result);
}

// --- Logarithms ------------------------------------------------------------------------------------------------------

MathFunctions::Reduced MathFunctions::reduce(Value x) {
  int bits = wide ? 52 : 23;
  Value denormal = less(x, wide ? 0x1p-1022 : 0x1p-126);
  Value normal = emit.select(denormal, multiply(x, number(std::ldexp(1.0, bits + 1))), x);
  Value raw = emit.bits(normal, getElementTypeOrSelf(words));
  Value above = emit.make<arith::SubIOp>(raw, word(wide ? 0x3FE6A09E667F3BCD : 0x3F3504F3)); // the word of √½
  Value exponent = emit.make<arith::ShRSIOp>(above, word(bits));
  Value mantissa = emit.make<arith::SubIOp>(raw, emit.make<arith::ShLIOp>(exponent, word(bits)));
  Value n = emit.make<arith::SIToFPOp>(type, exponent);
  n = emit.select(denormal, subtract(n, number(bits + 1)), n);
  return {n, subtract(emit.bits(mantissa, getElementTypeOrSelf(type)), number(1))};
}

/// Special cases of a logarithm: −inf at 0, inf at inf, and NaN for NaN and negative numbers.
Value MathFunctions::atEndsOfLog(Value x, Value result) {
  Value inf = number(INFINITY), zero = number(0);
  result = emit.select(emit.compare(arith::CmpFPredicate::OEQ, x, inf), x, result);
  Value pole = emit.select(emit.compare(arith::CmpFPredicate::OEQ, x, zero), number(-INFINITY), number(NAN));
  return emit.select(emit.compare(arith::CmpFPredicate::ULE, x, zero), pole, result);
}

/// log(1 + t) = t − t²/2 + t³ · P(t), with the coefficients of Cephes' logf, whose error is at most 0.05 ulp (log2:
/// 0.19). The error is largest for n = −1 and t = √2 − 1, because the sum is half as large as its terms: 1.5 ulp. For
/// log2 it is 2.2 ulp there: its last sum is exact, but doubles the roundings of its terms in ulp. For n = 0 the error
/// is below 1.0 (log2: 1.7), and for larger n below 1.3.
Value MathFunctions::log32(Value x, bool two, Value lost) {
  auto [n, t] = reduce(x);
  Value square = multiply(t, t);
  Value p = polynomial(t, {7.0376836292E-2, -1.1514610310E-1, 1.1676998740E-1, -1.2420140846E-1, 1.4249322787E-1,
                           -1.6668057665E-1, 2.0000714765E-1, -2.4999993993E-1, 3.3333331174E-1});
  p = multiply(p, t);
  Value result;
  if (two) { // times log2 e = 1 + 0.44…; its products with the small parts are added in order of size
    Value small = fma(square, number(-0.5), multiply(p, square)), rest = number(0.44269504088896340736);
    result = fma(t, rest, multiply(small, rest));
    result = add(add(add(result, small), t), n);
  } else {
    Value low = number(-2.12194440e-4); // of ln 2
    Value small = fma(p, square, lost ? fma(n, low, lost) : multiply(n, low));
    small = add(fma(square, number(-0.5), small), t);
    result = fma(n, number(0.693359375), small);
  }
  return atEndsOfLog(x, result);
}

/// log(1 + t) = t − (t²/2 − s · (t²/2 + R(s²))), s = t / (2 + t), as in FreeBSD's e_log.c and e_log2.c.
Value MathFunctions::log64(Value x, bool two, Value lost) {
  auto [n, t] = reduce(x);
  Value s = divide(t, add(t, number(2))), z = multiply(s, s);
  Value r = multiply(z, polynomial(z, {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                                       2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                                       6.666666666666735130e-01}));
  Value halfSquare = multiply(number(0.5), multiply(t, t));
  Value correction = multiply(s, add(halfSquare, r));
  if (!two) {
    Value low = fma(n, number(1.90821492927058770002e-10), lost ? add(correction, lost) : correction);
    Value small = subtract(subtract(halfSquare, low), t);
    return atEndsOfLog(x, subtract(multiply(n, number(6.93147180369123816490e-01)), small));
  }
  // The product with log2 e in two parts: `high` keeps the upper half of its bits, so that its product is exact.
  Value high = subtract(t, halfSquare);
  Value kept = emit.make<arith::AndIOp>(emit.bits(high, getElementTypeOrSelf(words)), word(~int64_t(0xFFFFFFFF)));
  high = emit.bits(kept, getElementTypeOrSelf(type));
  Value low = add(subtract(subtract(t, high), halfSquare), correction);
  Value log2eHigh = number(1.44269504072144627571e+00), log2eLow = number(1.67517131648865118353e-10);
  Value highPart = multiply(high, log2eHigh);
  Value lowPart = fma(add(low, high), log2eLow, multiply(low, log2eHigh));
  Value sum = add(n, highPart);
  lowPart = add(lowPart, add(subtract(n, sum), highPart));
  return atEndsOfLog(x, add(lowPart, sum));
}

Value MathFunctions::log2(Value x) { return wide ? log64(x, true) : log32(x, true); }
Value MathFunctions::log(Value x) { return wide ? log64(x, false) : log32(x, false); }

/// log u + d / u, where u is 1 + x rounded, and d is the rounding error, at most half a unit in the last place of u:
///
///     log (u + d) = log u + d / u − d² / 2u² …
///
/// The term d / u is added to the small parts of the logarithm's sum, so the error bound changes only by the omitted
/// square. It is half an ulp if x is near 2^-24.
Value MathFunctions::log1p(Value x) {
  Value u = add(number(1), x), lost = subtract(x, subtract(u, number(1)));
  lost = emit.select(above(magnitude(x), wide ? 0x1p54 : 0x1p25), number(0), lost); // none for infinity
  lost = divide(lost, u);
  Value result = wide ? log64(u, false, lost) : log32(u, false, lost);
  Value isOwn = less(magnitude(x), wide ? 0x1p-54 : 0x1p-25);
  Value isPole = emit.compare(arith::CmpFPredicate::OEQ, x, number(-1));
  return emit.select(isOwn, x, emit.select(isPole, number(-INFINITY), result));
}

/// Two roundings: half an ulp of the root, which is up to one ulp of the quotient, and half an ulp of the quotient.
Value MathFunctions::rsqrt(Value x) { return divide(number(1), emit.make<math::SqrtOp>(x)); }

// --- Patterns for passes of every target -----------------------------------------------------------------------------

bool isScalarOrVector(Type type, function_ref<bool(Type)> isElement) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector && isa<ShapedType>(type))
    return false;
  return (!vector || vector.getRank() == 1) && isElement(getElementTypeOrSelf(type));
}

namespace {
template <class OpTy, auto function> struct LowerFunction : OpRewritePattern<OpTy> {
  LowerFunction(MLIRContext *context, ScaleInstruction scale, bool (*canScale)(Type))
      : OpRewritePattern<OpTy>(context), instruction(scale), canScale(canScale) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!isScalarOrVector(op.getType(), [](Type element) { return element.isF32() || element.isF64(); }))
      return rewriter.notifyMatchFailure(op, "not a scalar or vector of f32 or f64");
    const auto scale = [&](Value x, Value n, Value keep) { return instruction(rewriter, op.getLoc(), x, n, keep); };
    const bool scales = instruction && canScale(op.getType());
    MathFunctions functions(rewriter, op.getLoc(), op.getType(), scales ? MathFunctions::Scale(scale) : nullptr);
    if constexpr (std::is_invocable_v<decltype(function), MathFunctions &, Value, Value>)
      rewriter.replaceOp(op, (functions.*function)(op.getLhs(), op.getRhs()));
    else
      rewriter.replaceOp(op, (functions.*function)(op.getOperand()));
    return success();
  }

  const ScaleInstruction instruction;
  bool (*const canScale)(Type);
};
} // namespace

void addFunctionPatterns(RewritePatternSet &patterns, ScaleInstruction scale, bool (*canScale)(Type)) {
#define KILN_FUNCTION(name, operation, ...)                                                                            \
  patterns.add<LowerFunction<math::operation, &MathFunctions::name>>(patterns.getContext(), scale, canScale);
#define KILN_FUNCTION_OF_TWO KILN_FUNCTION
#include "dialect/tile/Functions.def"
  patterns.add<LowerFunction<arith::RemFOp, &MathFunctions::remainder>>(patterns.getContext(), scale, canScale);
}

void removeAccuracies(Operation *root) {
  root->walk([](arith::DivFOp division) { tile::setAccuracy(division, tile::Accuracy::Full); });
}

} // namespace kiln::lowering

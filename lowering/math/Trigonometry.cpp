// sin, cos, tan and their inverses in arithmetic, within their bounds for every finite argument.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

// --- sin and cos -----------------------------------------------------------------------------------------------------

// x = q · π/2 + r with |r| at most slightly above π/4; then a polynomial for sin r or cos r, selected by the last two
// bits of q. For |x| below a limit, r is x minus q times π/2 in three parts (Cody and Waite). Beyond it, on a rarely
// taken branch, r is the product of x's digits with the relevant digits of 2/π (Payne and Hanek).

/// A reduced angle: x = quadrant · π/2 + r + tail; of the integer quadrant, only the last two bits are used. In f32, r
/// is exact enough without a tail.
struct MathFunctions::Angle {
  Value r, tail, quadrant;
};

SmallVector<Value> MathFunctions::rarely(Value condition, ArrayRef<Value> usual,
                                         function_ref<SmallVector<Value>()> slow) {
  Value any = condition;
  if (isa<VectorType>(condition.getType()))
    any = emit.make<vector::ReductionOp>(vector::CombiningKind::OR, condition);
  auto branch = scf::IfOp::create(
      builder, loc, any,
      [&](OpBuilder &, Location) {
        SmallVector<Value> chosen;
        for (const auto &[rare, plain] : llvm::zip_equal(slow(), usual))
          chosen.push_back(emit.select(condition, rare, plain));
        scf::YieldOp::create(builder, loc, chosen);
      },
      [&](OpBuilder &, Location) { scf::YieldOp::create(builder, loc, usual); });
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// Four consecutive words of a table from `position` on, always within the table.
SmallVector<Value, 4> MathFunctions::fromTable(ArrayRef<uint64_t> table, Value position) {
  const Type type = position.getType();
  SmallVector<Value> words =
      llvm::map_to_vector(table, [&](uint64_t word) { return emit.integer(type, static_cast<int64_t>(word)); });
  for (int step = llvm::PowerOf2Ceil(table.size() - 3) / 2; step > 0; step /= 2) {
    const Value bit = emit.make<arith::AndIOp>(position, emit.integer(type, step));
    const Value moves = emit.compare(arith::CmpIPredicate::ne, bit, emit.integer(type, 0));
    SmallVector<Value> next;
    for (size_t i = 0; i < std::min<size_t>(words.size(), step + 3); ++i)
      next.push_back(i + step < words.size() ? emit.select(moves, words[i + step], words[i]) : words[i]);
    words = next;
  }
  return {words[0], words[1], words[2], words[3]};
}

// The digits of 2/π after zeros, so that the first window of an argument begins at the first digit.
static const uint64_t twoOverPi32[] = {0x00a2f983, 0x6e4e4415, 0x29fc2757, 0xd1f534dd,
                                       0xc0db6295, 0x993c4390, 0x41fe5163};
static const uint64_t twoOverPi64[] = {0x0000000028be60db, 0x9391054a7f09d5f4, 0x7d4d377036d8a566, 0x4f10e4107f9458ea,
                                       0xf7aef1586dc91b8e, 0x909374b801924bba, 0x827464873f877ac7, 0x2c4a69cfba208d7d,
                                       0x4baed1213a671c09, 0xad17df904e64758e, 0x60d4ce7d272117e2, 0xef7e4a0ec7fe25ff,
                                       0xf7816603fbcbc462, 0xd6829b47db4d9fb3, 0xc9f2c26dd3d18fd9, 0xa797fa8b5d49eeb1,
                                       0xfaf97c5ecf41ce7d, 0xe294a4ba9afed7ec, 0x47e357421580cc11};

/// For |x| below the limit: x − n · (p₁ + p₂ + p₃), each part with all digits of its type. The first difference is
/// exact; the rounding error of the second is kept.
MathFunctions::Angle MathFunctions::reduceNear(Value x) {
  Rounded n = round(x, number(0x1.45f306dc9c883p-1));
  Value minus = negated(n.integer);
  Value first = fma(minus, number(wide ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0), x);
  Value part = number(wide ? 0x1.1a62633145c07p-54 : -0x1.777a5cp-25), product = multiply(minus, part);
  Value error = fma(minus, part, negated(product));
  Value second = add(first, product), moved = subtract(second, first);
  Value lost = add(subtract(first, subtract(second, moved)), subtract(product, moved));
  Value rest = fma(minus, number(wide ? -0x1.f1976b7ed8fbcp-110 : -0x1.ee59dap-50), add(lost, error));
  Value r = add(second, rest), tail = wide ? add(subtract(second, r), rest) : Value();
  return {r, tail, emit.bits(n.carrier, getElementTypeOrSelf(words))};
}

/// Any other finite x = m · 2ᵉ: the product of m with 96 digits of 2/π · 2ᵉ from weight 2 on. Higher digits change the
/// quadrant by multiples of 4; lower ones contribute at most 2⁻⁶¹, and |r| is at least 2⁻³⁰ for every f32.
MathFunctions::Angle MathFunctions::reduceFar32(Value x) {
  const Type longs = typeLike(type, builder.getI64Type());
  const auto number64 = [&](int64_t value) { return emit.integer(longs, value); };
  Value size = emit.make<arith::ExtUIOp>(longs, emit.bits(magnitude(x), builder.getI32Type()));
  Value digits = emit.make<arith::OrIOp>(emit.make<arith::AndIOp>(size, number64(0x7fffff)), number64(0x800000));
  Value start = emit.make<arith::SubIOp>(emit.make<arith::ShRUIOp>(size, number64(23)), number64(144));
  start = emit.make<arith::AndIOp>(start, number64(127));
  Value shift = emit.make<arith::AndIOp>(start, number64(31));
  auto table = fromTable(twoOverPi32, emit.make<arith::ShRUIOp>(start, number64(5)));
  Value window[3];
  for (int i = 0; i < 3; ++i) {
    Value both = emit.make<arith::OrIOp>(emit.make<arith::ShLIOp>(table[i], number64(32)), table[i + 1]);
    window[i] = emit.make<arith::ShRUIOp>(emit.make<arith::ShLIOp>(both, shift), number64(32));
  }
  Value high = emit.make<arith::OrIOp>(emit.make<arith::ShLIOp>(window[0], number64(32)), window[1]);
  Value low = emit.make<arith::ShRUIOp>(emit.make<arith::MulIOp>(digits, window[2]), number64(32));
  // In units of 2⁻⁶⁴ of four quadrants.
  Value turns = emit.make<arith::AddIOp>(emit.make<arith::MulIOp>(digits, high), low);
  Value quadrant = emit.make<arith::ShRUIOp>(emit.make<arith::AddIOp>(turns, number64(1LL << 61)), number64(62));
  Value rest = emit.make<arith::SubIOp>(turns, emit.make<arith::ShLIOp>(quadrant, number64(62)));
  const Type doubles = typeLike(type, builder.getF64Type());
  Value r =
      emit.make<arith::MulFOp>(emit.make<arith::SIToFPOp>(doubles, rest), emit.real(doubles, 0x1.921fb54442d18p-62));
  return copySign(x, {emit.make<arith::TruncFOp>(type, r), {}, emit.make<arith::TruncIOp>(words, quadrant)});
}

/// The upper 64 bits of a product of unsigned numbers, by halves.
Value MathFunctions::highProduct(Value a, Value b) {
  const auto times = [&](Value p, Value q) { return emit.make<arith::MulIOp>(p, q); };
  const auto high = [&](Value p) { return emit.make<arith::ShRUIOp>(p, word(32)); };
  const auto low = [&](Value p) { return emit.make<arith::AndIOp>(p, word(0xFFFFFFFF)); };
  const auto sum = [&](Value p, Value q) { return emit.make<arith::AddIOp>(p, q); };
  Value middle = sum(times(high(a), low(b)), high(times(low(a), low(b))));
  Value other = sum(times(low(a), high(b)), low(middle));
  return sum(sum(times(high(a), high(b)), high(middle)), high(other));
}

/// As above with 192 digits, which leave a relative error of 2⁻⁶⁴ for the smallest |r|, 2⁻⁶².
MathFunctions::Angle MathFunctions::reduceFar64(Value x) {
  const auto sum = [&](Value p, Value q) { return emit.make<arith::AddIOp>(p, q); };
  Value size = emit.bits(magnitude(x), builder.getI64Type());
  Value digits = emit.make<arith::OrIOp>(emit.make<arith::AndIOp>(size, word((1LL << 52) - 1)), word(1LL << 52));
  Value start = emit.make<arith::SubIOp>(emit.make<arith::ShRUIOp>(size, word(52)), word(1043));
  start = emit.make<arith::AndIOp>(start, word(1023));
  Value shift = emit.make<arith::AndIOp>(start, word(63)), back = emit.make<arith::SubIOp>(word(63), shift);
  auto table = fromTable(twoOverPi64, emit.make<arith::ShRUIOp>(start, word(6)));
  Value window[3];
  for (int i = 0; i < 3; ++i) {
    Value carried = emit.make<arith::ShRUIOp>(emit.make<arith::ShRUIOp>(table[i + 1], word(1)), back);
    window[i] = emit.make<arith::OrIOp>(emit.make<arith::ShLIOp>(table[i], shift), carried);
  }
  Value low = emit.make<arith::MulIOp>(digits, window[1]), fromBelow = highProduct(digits, window[2]);
  Value high = sum(emit.make<arith::MulIOp>(digits, window[0]), highProduct(digits, window[1]));
  low = sum(low, fromBelow);
  Value carry = emit.make<arith::ExtUIOp>(words, emit.compare(arith::CmpIPredicate::ult, low, fromBelow));
  high = sum(high, carry);
  Value quadrant = emit.make<arith::ShRUIOp>(sum(high, word(1LL << 61)), word(62));
  high = emit.make<arith::SubIOp>(high, emit.make<arith::ShLIOp>(quadrant, word(62)));
  // Four pieces of 32 bits, which f64 represents exactly, in units of 2⁻⁶² quadrants.
  const auto real = [&](Value piece, double unit) {
    return multiply(emit.make<arith::SIToFPOp>(type, piece), number(unit));
  };
  Value mask = word(0xFFFFFFFF);
  Value a = real(emit.make<arith::ShRSIOp>(high, word(32)), 0x1p32), b = real(emit.make<arith::AndIOp>(high, mask), 1);
  Value c = real(emit.make<arith::ShRUIOp>(low, word(32)), 0x1p-32);
  Value d = real(emit.make<arith::AndIOp>(low, mask), 0x1p-64);
  Value upper = add(a, b), upperLost = add(subtract(a, upper), b);
  Value lower = add(c, d), lowerLost = add(subtract(c, lower), d);
  Value whole = add(upper, lower), lost = add(subtract(upper, whole), lower);
  lost = add(lost, add(upperLost, lowerLost));
  Value turns = add(whole, lost), rest = add(subtract(whole, turns), lost);
  Value unit = number(0x1.921fb54442d18p-62), product = multiply(turns, unit);
  Value error = fma(turns, unit, negated(product));
  error = add(error, fma(turns, number(0x1.1a62633145c07p-116), multiply(rest, unit)));
  Value r = add(product, error);
  return copySign(x, {r, add(subtract(product, r), error), quadrant});
}

/// Changes the reduced angle of |x| to that of x.
MathFunctions::Angle MathFunctions::copySign(Value x, Angle angle) {
  Value negative = emit.compare(arith::CmpIPredicate::slt, emit.bits(x, getElementTypeOrSelf(words)), word(0));
  Value quadrant = emit.make<arith::SubIOp>(word(0), angle.quadrant);
  Value tail = angle.tail ? emit.select(negative, negated(angle.tail), angle.tail) : Value();
  return {emit.select(negative, negated(angle.r), angle.r), tail, emit.select(negative, quadrant, angle.quadrant)};
}

MathFunctions::Angle MathFunctions::reduceAngle(Value x) {
  const Angle near = reduceNear(x);
  SmallVector<Value> usual = {near.r, near.quadrant};
  if (wide)
    usual.push_back(near.tail);
  Value isFar = emit.compare(arith::CmpFPredicate::OGE, magnitude(x), number(wide ? 0x1p20 : 0x1p17));
  SmallVector<Value> chosen = rarely(isFar, usual, [&]() -> SmallVector<Value> {
    Angle far = wide ? reduceFar64(x) : reduceFar32(x);
    far.r = fma(x, number(0), far.r); // NaN for infinity
    return wide ? SmallVector<Value>{far.r, far.quadrant, far.tail} : SmallVector<Value>{far.r, far.quadrant};
  });
  return {chosen[0], wide ? chosen[2] : Value(), chosen[1]};
}

// Polynomials of (sin √z / √z − 1) / z and (cos √z − 1 + z / 2) / z² for z up to 0.792², interpolated at Chebyshev's
// nodes. Their errors, relative to the result, are 2^-26.2 and 2^-29.9 in f32, and 2^-55.2 and 2^-59.4 in f64.
static const double sinTerms32[] = {-0x1.9ab2dep-13, 0x1.110bfep-7, -0x1.555552p-3};
static const double cosTerms32[] = {0x1.9bc65p-16, -0x1.6c12bp-10, 0x1.555554p-5};
static const double sinTerms64[] = {0x1.5dfdc45fbe65dp-33,  -0x1.ae5fe5ae91a2dp-26, 0x1.71de37726a2a5p-19,
                                    -0x1.a01a019e6792fp-13, 0x1.1111111110b3ap-7,   -0x1.5555555555555p-3};
static const double cosTerms64[] = {-0x1.90704a8d00259p-37, 0x1.1eeb563aa2d79p-29,  -0x1.27e4fa05c5c08p-22,
                                    0x1.a01a019f40a0cp-16,  -0x1.6c16c16c1692bp-10, 0x1.5555555555555p-5};

/// The error in f32, in ulp. For sin: the sum rounds by 0.5, and r by 0.5, or by 0.9 if sin r has a lower exponent; the
/// polynomial contributes 0.2 and its steps 0.3: 1.9. For cos: the sum 0.5, r 0.4 by the slope, the product with r² and
/// its rounding 0.4, the polynomial and its steps 0.1: 1.4.
Value MathFunctions::sine(Value x, int quarter) {
  const auto [r, tail, quadrant] = reduceAngle(x);
  Value z = multiply(r, r);
  Value sin = polynomial(z, wide ? ArrayRef<double>(sinTerms64) : ArrayRef<double>(sinTerms32));
  Value cos = polynomial(z, wide ? ArrayRef<double>(cosTerms64) : ArrayRef<double>(cosTerms32));
  if (wide) { // sin (r + t) = sin r + t · cos r, cos (r + t) = cos r − t · r, and 1 − z / 2 with its rounding error
    Value half = multiply(z, number(0.5)), slope = subtract(number(1), half);
    sin = add(r, fma(multiply(r, z), sin, multiply(tail, slope)));
    Value lost = subtract(subtract(number(1), slope), half);
    cos = add(slope, fma(multiply(z, z), cos, subtract(lost, multiply(r, tail))));
  } else {
    sin = fma(r, multiply(z, sin), r);
    cos = fma(z, fma(z, cos, number(-0.5)), number(1));
  }
  Value rotated = quarter ? emit.make<arith::AddIOp>(quadrant, word(quarter)) : quadrant;
  const auto hasBit = [&](int64_t bit) {
    return emit.compare(arith::CmpIPredicate::ne, emit.make<arith::AndIOp>(rotated, word(bit)), word(0));
  };
  Value result = emit.select(hasBit(1), cos, sin);
  return emit.select(hasBit(2), negated(result), result);
}

/// sin ±0 is ±0.
Value MathFunctions::sin(Value x) {
  return emit.select(emit.compare(arith::CmpFPredicate::OEQ, x, number(0)), x, sine(x, 0));
}
Value MathFunctions::cos(Value x) { return sine(x, 1); }

// --- atan, atan2, asin and acos --------------------------------------------------------------------------------------

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

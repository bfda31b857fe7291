// C's fmod in arithmetic, exact for all operands.

#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace kiln::lowering {

SmallVector<Value> MathFunctions::repeated(int rounds, ArrayRef<Value> first,
                                           function_ref<SmallVector<Value>(ValueRange)> round) {
  const auto bound = [&](int64_t number) { return emit.make<arith::ConstantOp>(builder.getIndexAttr(number)); };
  auto loop = scf::ForOp::create(
      builder, loc, bound(0), bound(rounds), bound(1), first,
      [&](OpBuilder &, Location, Value, ValueRange carried) { scf::YieldOp::create(builder, loc, round(carried)); });
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// a − ⌊a / divisor⌋ · divisor, for nonnegative numbers with a quotient below 2^24 (f64: 2^53). A quotient just below
/// an integer may round to it, so that the difference is negative; the divisor is then added. Both cases are exact.
Value MathFunctions::remainderNear(Value a, Value divisor) {
  Value times = emit.make<math::TruncOp>(divide(a, divisor));
  Value rest = fma(negated(times), divisor, a);
  return emit.select(less(rest, 0), add(rest, divisor), rest);
}

/// As above, for any finite numbers and a nonzero divisor: reduces by multiples s = 2ᵏ · divisor, the first about 2^23
/// (f64: 2^52) times smaller than a, each following one smaller by that factor, down to the divisor itself. Small
/// operands are scaled up first, so that s is normal.
Value MathFunctions::remainderFar(Value a, Value divisor) {
  const int digits = wide ? 52 : 23;
  const auto lifted = [&](Value x, Value isSmall, int exponent) {
    return emit.select(isSmall, multiply(x, number(std::ldexp(1.0, exponent))), x);
  };
  const auto integers = [&](Value x) { return emit.bits(x, getElementTypeOrSelf(words)); };
  const auto exponentOf = [&](Value bits) { return emit.make<arith::ShRUIOp>(bits, word(digits)); };
  const auto shifted = [&](Value exponent) { return emit.make<arith::ShLIOp>(exponent, word(digits)); };
  const int lift = wide ? 500 : 100;
  Value isSmall = less(a, wide ? 0x1p-900 : 0x1p-100);
  Value rest = lifted(a, isSmall, lift), below = lifted(divisor, isSmall, lift);
  Value isDenormal = less(below, wide ? 0x1p-1022 : 0x1p-126);
  Value bits = integers(lifted(below, isDenormal, digits + 1));
  Value smallest = emit.make<arith::SubIOp>(exponentOf(bits), emit.select(isDenormal, word(digits + 1), word(0)));
  Value largest = emit.make<arith::SubIOp>(exponentOf(integers(rest)), word(digits));
  Value mantissa = emit.make<arith::AndIOp>(bits, word((int64_t(1) << digits) - 1));
  Value multiple = emit.bits(emit.make<arith::OrIOp>(mantissa, shifted(largest)), getElementTypeOrSelf(type));
  Value left = emit.make<arith::SubIOp>(largest, smallest);
  const int most = wide ? 2046 + 51 : 254 + 22; // the largest difference of exponents, denormals included
  const auto round = [&](ValueRange carried) -> SmallVector<Value> {
    Value less = emit.compare(arith::CmpIPredicate::slt, carried[2], word(digits));
    Value step = emit.select(less, carried[2], word(digits));
    Value scale =
        emit.bits(shifted(emit.make<arith::SubIOp>(word(wide ? 1023 : 127), step)), getElementTypeOrSelf(type));
    return {remainderNear(carried[0], carried[1]), multiply(carried[1], scale),
            emit.make<arith::SubIOp>(carried[2], step)};
  };
  rest = repeated(1 + (most - 1) / digits, {rest, multiple, left}, round)[0];
  return lifted(rest, isSmall, -lift);
}

/// NaN if x is infinite or y = 0, as the reduction computes; x if y is larger.
Value MathFunctions::remainder(Value x, Value y) {
  using F = arith::CmpFPredicate;
  Value size = magnitude(x), divisor = magnitude(y), usual = remainderNear(size, divisor);
  Value isFar = emit.compare(F::OGE, divide(size, divisor), number(wide ? 0x1p53 : 0x1p24));
  Value isNumber =
      emit.make<arith::AndIOp>(emit.compare(F::OLT, size, number(INFINITY)), emit.compare(F::OGT, divisor, number(0)));
  Value rest = rarely(emit.make<arith::AndIOp>(isFar, isNumber), usual,
                      [&]() -> SmallVector<Value> { return {remainderFar(size, divisor)}; })[0];
  return withSign(emit.select(emit.compare(F::OLT, size, divisor), size, rest), x);
}

} // namespace kiln::lowering

// The functions of Functions.def, and remainders, of f32 and f64, as arithmetic on scalars or vectors.
//
// They use no memory and no calls. Only sin, cos, pow and remainders have branches. Each handles ±0, ±inf, NaN,
// denormal arguments and denormal results. Errors are in ulp, the spacing of floats at the exact result; Functions.def
// has the bounds. Those of f32 are derived next to each function: the error of its polynomial, and half an ulp of each
// rounded intermediate result, propagated to the end. The bounds of f64 are measured on random arguments, and for sin
// and cos also on angles next to multiples of π/2. test/runtime/semantics/math_test.cc compares all of them with C's
// long double.
//
// Found: in f32 over every 61st word (`kiln-ulps --every 61`; log1p over all: 0.827 at 0x1.a791c8p-2), in f64 over 9
// million random arguments. The f32 with these errors:
//
//              f32                       f64                f32                       f64
//     exp2    1.897 at 0x1.001adap-1    0.94       acos    1.230 at -0x1.03630cp-1   1.15
//     exp     2.009 at 0x1.e7ff9cp+1    0.85       atan    0.846 at 0x1.622766p-1    0.84
//     log2    1.228 at 0x1.6a02e4p+0    0.78       sinh    1.589 at 0x1.6e4d5ep+0    1.64
//     log     0.778 at 0x1.69918cp-1    0.83       cosh    1.313 at -0x1.bc5f76p+0   1.51
//     tanh    2.477 at -0x1.fc637cp-6   1.37       asinh   1.672 at -0x1.f55776p-3   1.64
//     erf     1.270 at -0x1.dfcdp-1     2.83       acosh   1.891 at 0x1.07c542p+0    2.06
//     erfc    3.347 at 0x1.a2619ap+1    3.10       atanh   1.948 at 0x1.f82a78p-4    1.81
//     rsqrt   1.491 at 0x1.019566p-64              log1p   0.827 at 0x1.a791c8p-2    0.81
//     sin     1.480 at -0x1.24684p+73   0.78       expm1   1.038 at 0x1.650e7p-2     0.82
//     cos     1.490 at -0x1.ab01cep+89  0.78       log10   0.502 at 0x1.47349ap+0    0.51
//     tan     3.131 at -0x1.d2c6dp+62   1.97       exp10   0.876 at -0x1.2b99e8p-3
//     asin    1.078 at -0x1.0d508ep-1   1.10       pow     1.066 (random arguments)   1.24
//     cbrt    0.759 at 0x1.21f20ap-126  0.69       atan2                              1.47

#pragma once

#include "lowering/tile/Emit.h"

#include "mlir/IR/PatternMatch.h"

#include <functional>

namespace kiln::lowering {

class MathFunctions {
public:
  /// Emits x · 2ⁿ as an instruction of the target. n is an integer of any size; the result is rounded once. With
  /// n = −inf it is 0 and with n = inf it is inf, even if x is NaN. Lanes in which `keep` is false are 0; null: none.
  using Scale = llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value n, mlir::Value keep)>;
  /// Functions of values of `type`: f32, f64 or a vector of one of them. `scale` where the machine has it for the type;
  /// it must outlive this.
  MathFunctions(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, Scale scale = {});

#define KILN_FUNCTION(name, ...) mlir::Value name(mlir::Value x);
#define KILN_FUNCTION_OF_TWO(name, ...) mlir::Value name(mlir::Value x, mlir::Value y);
#include "dialect/tile/Functions.def"
  /// Of x / y, its quotient truncated, as C's fmod: exact, with the sign of x.
  mlir::Value remainder(mlir::Value x, mlir::Value y);

private:
  using Value = mlir::Value;
  Value number(double value) { return emit.real(type, value); }
  Value add(Value a, Value b) { return emit.make<mlir::arith::AddFOp>(a, b); }
  Value subtract(Value a, Value b) { return emit.make<mlir::arith::SubFOp>(a, b); }
  Value multiply(Value a, Value b) { return emit.make<mlir::arith::MulFOp>(a, b); }
  Value divide(Value a, Value b) { return emit.make<mlir::arith::DivFOp>(a, b); }
  Value fma(Value a, Value b, Value c);
  Value negated(Value x);
  Value magnitude(Value x);
  Value withSign(Value x, Value sign);
  Value word(int64_t value) { return emit.integer(words, value); }
  /// Greater, or not a number.
  Value above(Value a, double b) { return emit.compare(mlir::arith::CmpFPredicate::UGT, a, number(b)); }
  Value less(Value a, double b) { return emit.compare(mlir::arith::CmpFPredicate::OLT, a, number(b)); }
  /// The smaller of x and a bound; NaN stays NaN.
  Value atMost(Value x, double bound);
  /// c[0] xⁿ + c[1] xⁿ⁻¹ + … + c[n] by Horner's rule.
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);

  /// The nearest integer as a float, and a float that has the integer in its low bits.
  struct Rounded {
    Value integer, carrier;
  };
  /// A number as a sum of two: `low` is at most a few units in the last place of `high`.
  struct Pair {
    Value high, low;
  };
  /// x = 2ⁿ · (1 + t) with 1 + t between √½ and √2.
  struct Reduced {
    Value n, t;
  };
  struct Angle;
  /// The rounded sum or product, and its rounding error, exactly. `larger` is at least as large as `smaller`, or 0.
  Pair exactSum(Value larger, Value smaller);
  Pair exactProduct(Value a, Value b);
  Pair log2InTwo(Value x);
  /// 2 to a power that has more digits than one float.
  Value exp2OfTwo(Pair x);
  Value normalExp2OfTwo(Pair x);
  Value caseOfPow(Value x, Value y, Value power);
  Value halfOfExp(Value x);
  Value logOfSum(Value x, Value argument);
  Pair halfPi();
  Value bendOfAtan(Value q);
  Pair smallArc(Value x, Value isFar);
  Value remainderNear(Value a, Value divisor);
  Value remainderFar(Value a, Value divisor);
  Value powerOfTwo(Value half, Rounded n, Value x, double smallBelow);
  Value nearPower(Value remainder, llvm::ArrayRef<double> coefficients, bool half);
  Rounded round(Value x, Value factor);
  Value reduceByLn2(Value x, Value n);
  Value lessOne(Value r);
  Reduced reduce(Value x);
  Value atEndsOfLog(Value x, Value result);
  /// To base 2, or e; `lost` is added to the natural logarithm.
  Value log32(Value x, bool two, Value lost = {});
  Value log64(Value x, bool two, Value lost = {});
  Value tanh32(Value x);
  Value tanh64(Value x);
  Value erf32(Value x);
  Value erf64(Value x);
  Value erfNear64(Value x);
  /// `slow` in lanes where the condition is true, else `usual`. A branch computes `slow` only if it is true in any
  /// lane.
  llvm::SmallVector<Value> rarely(Value condition, llvm::ArrayRef<Value> usual,
                                  llvm::function_ref<llvm::SmallVector<Value>()> slow);
  /// The values after a loop of `rounds` iterations, from the initial values `first`.
  llvm::SmallVector<Value> repeated(int rounds, llvm::ArrayRef<Value> first,
                                    llvm::function_ref<llvm::SmallVector<Value>(mlir::ValueRange)> round);
  llvm::SmallVector<Value, 4> fromTable(llvm::ArrayRef<uint64_t> table, Value position);
  Value highProduct(Value a, Value b);
  Angle reduceNear(Value x);
  Angle reduceFar32(Value x);
  Angle reduceFar64(Value x);
  Angle copySign(Value x, Angle angle);
  Angle reduceAngle(Value x);
  /// sin (x + quarter · π/2).
  Value sine(Value x, int quarter);

  Emit emit;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type, words; // words: integers of the same width
  bool wide;              // f64
  Scale scale;
};

// --- Patterns for passes of every target -----------------------------------------------------------------------------

/// A scalar or a vector of one dimension whose elements `isElement` accepts.
bool isScalarOrVector(mlir::Type type, llvm::function_ref<bool(mlir::Type)> isElement);

/// Emits x · 2ⁿ as an instruction of the target (MathFunctions::Scale).
using ScaleInstruction = mlir::Value (*)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value n,
                                         mlir::Value keep);

/// Patterns for the functions of Functions.def, and remainders, of scalars and vectors of f32 and f64. `scale`, when
/// set, is used for the types that `canScale` accepts.
void addFunctionPatterns(mlir::RewritePatternSet &patterns, ScaleInstruction scale = nullptr,
                         bool (*canScale)(mlir::Type) = nullptr);

/// Removes the attribute `tile.accuracy` from all operations; no later pass reads it.
void removeAccuracies(mlir::Operation *root);

} // namespace kiln::lowering

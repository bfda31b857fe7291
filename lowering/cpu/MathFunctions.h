// Transcendental functions of f32 and f64 spelt in arithmetic, on a scalar or a vector alike.
//
// All are free of branches, tables and calls; each handles ±0, ±inf, NaN, denormal arguments and denormal results.
// Largest errors, measured by test/runtime/semantics/math_test.cc against the C library in the next wider type (one ulp
// is the spacing of floats at the exact result):
//
//            f32        f64
//     exp2   1.8 ulp    0.9 ulp
//     exp    2.0 ulp    0.9 ulp
//     log2   1.2 ulp    0.7 ulp
//     log    0.8 ulp    0.8 ulp
//     tanh   4.2 ulp    1.2 ulp
//     erf    1.2 ulp    2.5 ulp
//     rsqrt  1.5 ulp    1.5 ulp

#pragma once

#include "lowering/tile/Emit.h"

namespace kiln::lowering {

class MathFunctions {
public:
  /// Functions of values of `type`: f32, f64 or a vector of one of them. `scaleInstruction`: AVX-512's vscalef, which
  /// multiplies by a power of two at any range, may be used where the vector fills a register.
  MathFunctions(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, bool scaleInstruction);

  mlir::Value exp2(mlir::Value x);
  mlir::Value exp(mlir::Value x);
  mlir::Value log2(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);

private:
  using Value = mlir::Value;
  Value number(double value) { return emit.real(type, value); }
  Value add(Value a, Value b) { return emit.make<mlir::arith::AddFOp>(a, b); }
  Value subtract(Value a, Value b) { return emit.make<mlir::arith::SubFOp>(a, b); }
  Value multiply(Value a, Value b) { return emit.make<mlir::arith::MulFOp>(a, b); }
  Value divide(Value a, Value b) { return emit.make<mlir::arith::DivFOp>(a, b); }
  Value fma(Value a, Value b, Value c);
  Value magnitude(Value x);
  Value withSign(Value x, Value sign);
  Value word(int64_t value) { return emit.integer(words, value); }
  /// Greater, or not a number.
  Value above(Value a, double b) { return emit.compare(mlir::arith::CmpFPredicate::UGT, a, number(b)); }
  Value less(Value a, double b) { return emit.compare(mlir::arith::CmpFPredicate::OLT, a, number(b)); }
  /// The smaller or larger of x and a bound; NaN stays NaN.
  Value atMost(Value x, double bound);
  Value atLeast(Value x, double bound);
  /// c[0] xⁿ + c[1] xⁿ⁻¹ + … + c[n] by Horner's rule.
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);

  struct Rounded;
  struct Reduced;
  Value powerOfTwo(Value half, Rounded n, Value x, double smallBelow);
  Value scale(Value x, Value n, Value keep);
  bool canScale() const;
  Value nearPower(Value remainder, llvm::ArrayRef<double> coefficients, bool half);
  Rounded round(Value x, Value factor);
  Reduced reduce(Value x);
  Value atEndsOfLog(Value x, Value result);
  Value log32(Value x, bool two);
  Value log64(Value x, bool two);
  Value tanh32(Value x);
  Value tanh64(Value x);
  Value erf32(Value x);
  Value erf64(Value x);

  Emit emit;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type, words; // words: integers of the same width
  bool wide;              // f64
  bool scaleInstruction;
};

} // namespace kiln::lowering

// Transcendental functions of f32 and f64 spelt in arithmetic, on a scalar or a vector alike.
//
// All are free of memory and calls, and but for sin and cos of branches; each handles ±0, ±inf, NaN, denormal arguments
// and denormal results. Errors in ulp, the spacing of floats at the exact result. The bounds of f32 are derived beside
// each function: the error of its polynomial, and half an ulp of each rounded intermediate result carried on to the
// end. Beside them stands the largest error found in sweeps over the floats (of tanh's, every 64th; from sin on every
// 509th), against the C library. The limits of f64 are measured, on random arguments, and of sin and cos on the angles
// next to multiples of π/2. test/runtime/semantics/math_test.cc holds all of them.
//
//            f32: bound  found      f64: limit
//     exp2          2.0     1.93           0.9
//     exp           2.3     2.10           0.9
//     log2          2.2     1.31           0.7
//     log           1.5     0.83           0.8
//     tanh          3.4     2.41           1.2
//     erf           1.7        -           2.5
//     rsqrt         1.5        -           1.5
//     sin           2.0     1.46           1.0
//     cos           2.0     1.47           1.0
//     log1p         2.5     1.44           1.5
//     expm1         2.5     1.46           2.0

#pragma once

#include "lowering/tile/Emit.h"

namespace kiln::lowering {

class MathFunctions {
public:
  /// A machine's own x · 2ⁿ, for a whole n of any size, rounded once; also with n = ±inf, where it is 0 or inf even of
  /// a NaN. 0 in the lanes without `keep`, if that is given.
  using Scale = llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value n, mlir::Value keep)>;
  /// Functions of values of `type`: f32, f64 or a vector of one of them. `scale` where the machine has it for the type;
  /// it must outlive this.
  MathFunctions(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, Scale scale = {});

  mlir::Value exp2(mlir::Value x);
  mlir::Value exp(mlir::Value x);
  mlir::Value log2(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);
  mlir::Value sin(mlir::Value x);
  mlir::Value cos(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value expm1(mlir::Value x);

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

  /// The nearest integer as a float, and a float in whose low bits it stands.
  struct Rounded {
    Value integer, carrier;
  };
  struct Reduced;
  struct Angle;
  Value powerOfTwo(Value half, Rounded n, Value x, double smallBelow);
  Value nearPower(Value remainder, llvm::ArrayRef<double> coefficients, bool half);
  Rounded round(Value x, Value factor);
  Value reduceByLn2(Value x, Value n);
  Value lessOne(Value r);
  Reduced reduce(Value x);
  Value atEndsOfLog(Value x, Value result);
  Value log32(Value x, bool two);
  Value log64(Value x, bool two);
  Value tanh32(Value x);
  Value tanh64(Value x);
  Value erf32(Value x);
  Value erf64(Value x);
  /// `slow` where the condition holds, else `usual`: by a branch, which is taken where any lane's holds.
  llvm::SmallVector<Value> rarely(Value condition, llvm::ArrayRef<Value> usual,
                                  llvm::function_ref<llvm::SmallVector<Value>()> slow);
  llvm::SmallVector<Value, 4> fromTable(llvm::ArrayRef<uint64_t> table, Value position);
  Value highProduct(Value a, Value b);
  Angle reduceNear(Value x);
  Angle reduceFar32(Value x);
  Angle reduceFar64(Value x);
  Angle withSignOf(Value x, Angle angle);
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

} // namespace kiln::lowering

// Writes elementwise arithmetic on a scalar, tile or vector alike, at one place and location.
//
// A constant or a converted value takes the shape of the value it stands beside. Conversions round once and have a
// result for every input, as `tile.cast` promises.

#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace kiln::lowering {

/// `element`, or a tensor or vector of it with the shape of `type`.
mlir::Type typeLike(mlir::Type type, mlir::Type element);

class Emit {
public:
  Emit(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  template <class OpTy, class... Args> mlir::Value make(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...);
  }
  /// The same operation on other operands, with results of these types. Constants spread to theirs.
  mlir::Operation *again(mlir::Operation &op, mlir::ValueRange operands, mlir::TypeRange results);
  /// The constant `value` in every element of the integer type `type`.
  mlir::Value integer(mlir::Type type, int64_t value);
  /// The constant `value` in every element of the float type `type`.
  mlir::Value real(mlir::Type type, double value);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b) {
    return make<mlir::arith::CmpIOp>(predicate, a, b);
  }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a, mlir::Value b) {
    return make<mlir::arith::CmpFOp>(predicate, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return make<mlir::arith::SelectOp>(condition, a, b);
  }
  /// The bits of `value` as elements of `element`, which has the same width.
  mlir::Value bits(mlir::Value value, mlir::Type element);
  /// A scalar repeated to `type`; itself when that is a scalar.
  mlir::Value spread(mlir::Value scalar, mlir::Type type);
  /// `value` converted to `element` as `tile.cast` means it.
  mlir::Value cast(mlir::Value value, mlir::Type element);
  /// a + b in f64, where an inexact sum takes the neighbour with an odd last bit: rounding it again to a format with at
  /// least two bits less gives the same as rounding the exact sum.
  mlir::Value addToOdd(mlir::Value a, mlir::Value b);
  /// A float, kept apart from the conversion of an integer that made it, before it is narrowed: the two would become
  /// one that rounds once.
  mlir::Value settled(mlir::Value real);

private:
  mlir::Value castInteger(mlir::Value value, mlir::Type element);
  mlir::Value castToReal(mlir::Value integer, mlir::Type element);
  mlir::Value castToInteger(mlir::Value real, mlir::Type element);
  mlir::Value castReal(mlir::Value real, mlir::Type element);
  mlir::Value narrowToOdd(mlir::Value f64);
  mlir::Value stickyBits(mlir::Value i64);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace kiln::lowering

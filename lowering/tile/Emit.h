// Emits elementwise arithmetic on scalars, tiles or vectors, at one insertion point and location.
//
// A constant or a converted value has the shape of the other operand. Conversions round once and have a defined result
// for every input, as `tile.cast`.

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
  /// A copy of the operation with other operands and result types. Constants are repeated to the shape of their type.
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
  /// A scalar repeated to the shape of `type`; unchanged if `type` is a scalar.
  mlir::Value spread(mlir::Value scalar, mlir::Type type);
  /// `value` converted to `element` with the semantics of `tile.cast`.
  mlir::Value cast(mlir::Value value, mlir::Type element);
  /// a + b in f64 with rounding to odd: an inexact sum becomes the neighbour with an odd last bit. Rounding it again to
  /// a format with at least two bits less is then equal to rounding the exact sum.
  mlir::Value addToOdd(mlir::Value a, mlir::Value b);
  /// A float that was converted from an integer. A following conversion to a narrower type is not merged with that
  /// conversion; the merged one would round only once.
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

/// Converts bytes, which are 8-bit floats of type `element`, to f32.
mlir::Value realOfByte(Emit &emit, mlir::Value bytes, mlir::Type element);

// --- Unsigned integers -----------------------------------------------------------------------------------------------

/// `value` converted to `element` with the semantics of a `tile.cast` with `tile.unsigned`: the integer operand, or the
/// integer result of a float, is unsigned.
mlir::Value castUnsigned(Emit &emit, mlir::Value value, mlir::Type element);

} // namespace kiln::lowering

// Folds and verifiers of programs, conversions, total integer arithmetic and random numbers.

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/CommonFolders.h"

using namespace mlir;

namespace kiln::tile {

/// The constant of an operand: a scalar's value or a splat's; otherwise null.
static Attribute splatOf(Attribute attr) {
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(attr))
    return dense.isSplat() ? dense.getSplatValue<Attribute>() : Attribute();
  return attr;
}

/// `value` as the constant of `type`: itself for a scalar, a splat for a tile.
static Attribute constantOf(Type type, Attribute value) {
  if (auto shaped = dyn_cast<RankedTensorType>(type))
    return DenseElementsAttr::get(shaped, value);
  return value;
}

/// `isUnsigned`: of an unsigned type.
static Attribute castInteger(const APInt &value, bool isUnsigned, Type to) {
  if (auto type = dyn_cast<IntegerType>(to)) {
    if (type.getWidth() == 1)
      return IntegerAttr::get(type, APInt(1, !value.isZero()));
    return IntegerAttr::get(type, isUnsigned ? value.zextOrTrunc(type.getWidth()) : value.sextOrTrunc(type.getWidth()));
  }
  if (isByteFloat(to)) {
    APFloat wide(APFloat::IEEEquad()); // contains all integers
    wide.convertFromAPInt(value, /*IsSigned=*/!isUnsigned, APFloat::rmNearestTiesToEven);
    return FloatAttr::get(to, roundToByte(wide, cast<FloatType>(to)));
  }
  APFloat result(cast<FloatType>(to).getFloatSemantics());
  result.convertFromAPInt(value, /*IsSigned=*/!isUnsigned, APFloat::rmNearestTiesToEven);
  return FloatAttr::get(to, result);
}

static Attribute castFloat(APFloat value, bool isUnsigned, Type to) {
  bool inexact;
  if (isByteFloat(to))
    return FloatAttr::get(to, roundToByte(value, cast<FloatType>(to)));
  if (isa<FloatType>(to)) {
    value.convert(cast<FloatType>(to).getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    return FloatAttr::get(to, value);
  }
  auto type = cast<IntegerType>(to);
  if (type.getWidth() == 1)
    return IntegerAttr::get(type, APInt(1, !value.isZero()));
  APSInt result(type.getWidth(), isUnsigned);
  value.convertToInteger(result, APFloat::rmTowardZero, &inexact); // saturates; NaN gives 0
  return IntegerAttr::get(type, result);
}

/// The precision of a float type in bits, with the implicit bit.
static int64_t precisionOf(Type type) { return cast<FloatType>(type).getFPMantissaWidth(); }

/// Whether every value of `from` is a value of `to`.
static bool isExact(Type from, Type to) {
  if (from == to)
    return true;
  if (isScale(to) || (isScale(from) && to.isF16())) // no 0; 2^127
    return false;
  if (from.isInteger(1))
    return true;
  if (isa<IntegerType>(from) && isa<IntegerType>(to))
    return from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth();
  if (isa<IntegerType>(from)) // an f16 would overflow above i8, but i32 does not fit its precision either
    return from.getIntOrFloatBitWidth() - 1 <= precisionOf(to);
  if (isa<IntegerType>(to))
    return false;
  if (isByteFloat(to)) // neither contains the other
    return false;
  return !(from.isF16() && to.isBF16()) && !(from.isBF16() && to.isF16()) && precisionOf(from) <= precisionOf(to);
}

/// Whether cast(cast(x : from → between) → to) equals cast(x : from → to). It does if the first is exact and the second
/// does not depend on the source type: integers wrap, but floats saturate when cast to a narrower integer.
static bool isOneCast(Type from, Type between, Type to) {
  if (!isExact(from, between))
    return false;
  if (isNarrowFloat(to) && from != to && !from.isF32())
    return false; // machines round to narrow floats from f32, so other conversions are slower than two casts
  bool saturates = isa<FloatType>(between) && isa<IntegerType>(to) && !to.isInteger(1);
  return !saturates || isa<FloatType>(from) || isExact(from, to);
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  Type from = getElementTypeOrSelf(getSource().getType()), to = getElementTypeOrSelf(getType());
  if (auto inner = getSource().getDefiningOp<CastOp>();
      inner && !isUnsigned(inner) && !isUnsigned(*this) &&
      isOneCast(getElementTypeOrSelf(inner.getSource().getType()), from, to)) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  Attribute source = splatOf(adaptor.getSource());
  if (auto integer = dyn_cast_or_null<IntegerAttr>(source))
    return constantOf(getType(), castInteger(integer.getValue(), from.isInteger(1) || isUnsigned(*this), to));
  if (auto real = dyn_cast_or_null<FloatAttr>(source))
    return constantOf(getType(), castFloat(real.getValue(), isUnsigned(*this), to));
  return {};
}

static OpFoldResult foldIntegers(Type type, Attribute lhs, Attribute rhs,
                                 llvm::function_ref<APInt(const APInt &, const APInt &)> compute) {
  auto a = dyn_cast_or_null<IntegerAttr>(splatOf(lhs)), b = dyn_cast_or_null<IntegerAttr>(splatOf(rhs));
  if (!a || !b)
    return {};
  return constantOf(type, IntegerAttr::get(a.getType(), compute(a.getValue(), b.getValue())));
}

/// Whether the operand is the constant `value` in every element.
static bool isConstant(Attribute attr, int64_t value) {
  auto integer = dyn_cast_or_null<IntegerAttr>(splatOf(attr));
  return integer && integer.getValue().getSExtValue() == value;
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isConstant(adaptor.getRhs(), 1))
    return getLhs();
  return foldIntegers(getType(), adaptor.getLhs(), adaptor.getRhs(), [&](const APInt &a, const APInt &b) {
    return b.isZero() ? b : isUnsigned(*this) ? a.udiv(b) : a.sdiv(b); // APInt wraps INT_MIN / -1
  });
}

OpFoldResult RemOp::fold(FoldAdaptor adaptor) {
  return foldIntegers(getType(), adaptor.getLhs(), adaptor.getRhs(), [&](const APInt &a, const APInt &b) {
    return b.isZero() ? a : isUnsigned(*this) ? a.urem(b) : a.srem(b);
  });
}

OpFoldResult ShlOp::fold(FoldAdaptor adaptor) {
  if (isConstant(adaptor.getRhs(), 0))
    return getLhs();
  return foldIntegers(getType(), adaptor.getLhs(), adaptor.getRhs(),
                      [](const APInt &a, const APInt &n) { return a.shl(n); });
}

OpFoldResult ShrOp::fold(FoldAdaptor adaptor) {
  if (isConstant(adaptor.getRhs(), 0))
    return getLhs();
  return foldIntegers(getType(), adaptor.getLhs(), adaptor.getRhs(),
                      [&](const APInt &a, const APInt &n) { return isUnsigned(*this) ? a.lshr(n) : a.ashr(n); });
}

LogicalResult RandomOp::verify() {
  if (shapeOf(getIndex().getType()) != shapeOf(getType()))
    return emitOpError("expected one number for each index, but got indices of shape ")
           << shapeText(getIndex().getType()) << " and a result of shape " << shapeText(getType());
  return success();
}

} // namespace kiln::tile

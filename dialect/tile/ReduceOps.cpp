// Verifiers of reductions and the matrix product.

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile {

Type ReduceOp::resultType(ReduceKind kind, RankedTensorType source, int64_t axis) {
  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + axis);
  Type element = kind == ReduceKind::ArgMax ? IntegerType::get(source.getContext(), 32) : source.getElementType();
  return shape.empty() ? element : RankedTensorType::get(shape, element);
}

LogicalResult ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  int64_t axis = getAxis(), rank = source.getRank();
  if (axis < 0 || axis >= rank)
    return emitOpError("expected an axis from 0 to ") << rank - 1 << ", but got " << axis;
  const bool isBitwise = getKind() == ReduceKind::And || getKind() == ReduceKind::Or || getKind() == ReduceKind::Xor;
  if (isBitwise && isa<FloatType>(source.getElementType()))
    return emitOpError("expected integers for '")
           << stringifyReduceKind(getKind()) << "', but got " << source.getElementType();
  Type expected = resultType(getKind(), source, axis);
  const bool isExpected = getElementTypeOrSelf(expected) == getElementTypeOrSelf(getType()) && // whatever encodes them
                          isa<RankedTensorType>(expected) == isa<RankedTensorType>(getType()) &&
                          shapeOf(expected) == shapeOf(getType());
  if (!isExpected)
    return emitOpError("expected a result of type ") << expected << ", but got " << getType();
  return success();
}

/// Along an axis of extent 1 the one element is the sum and the extreme, and its index is 0.
LogicalResult ReduceOp::canonicalize(ReduceOp op, PatternRewriter &rewriter) {
  if (shapeOf(op.getSource().getType())[op.getAxis()] != 1)
    return rewriter.notifyMatchFailure(op, "there is more than one element to combine");
  if (op.getKind() == ReduceKind::ArgMax)
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, cast<TypedAttr>(rewriter.getZeroAttr(op.getType())));
  else
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getSource());
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType()),
       acc = cast<RankedTensorType>(getAcc().getType());
  if (a.getRank() != 2 || b.getRank() != 2 || acc.getRank() != 2)
    return emitOpError("expected tiles of rank 2, but got ranks ")
           << a.getRank() << ", " << b.getRank() << " and " << acc.getRank();
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOpError("expected inner sizes to match, but got ") << shapeText(a) << " and " << shapeText(b);
  if (acc.getDimSize(0) != a.getDimSize(0) || acc.getDimSize(1) != b.getDimSize(1))
    return emitOpError("expected an accumulator of shape ")
           << a.getDimSize(0) << "x" << b.getDimSize(1) << ", but got " << shapeText(acc);
  Type operand = a.getElementType();
  if (operand != b.getElementType())
    return emitOpError("expected operands of one element type, but got ") << operand << " and " << b.getElementType();
  // Integers that a machine has widened already are no operands of the language's, but of the dialect's.
  Type sum = operand.isInteger(32) ? operand : sumTypeOf(operand);
  if (!sum)
    return emitOpError("expected operands of type ") << dotOperands << ", but got " << operand;
  if (acc.getElementType() != sum)
    return emitOpError("expected an accumulator of ")
           << sum << " for operands of " << operand << ", but got " << acc.getElementType();
  return success();
}

} // namespace kiln::tile

// Verifiers and folds of sorts, gathers and histograms.

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile {

bool SortOp::isOfKeys() {
  const Type element = getSource().getType().getElementType();
  return (element.isInteger(32) || element.isInteger(64)) && !getDescending() && !isUnsigned(*this) &&
         (getTies() || getPositions().use_empty());
}

LogicalResult SortOp::verify() {
  const RankedTensorType source = getSource().getType(), result = getResult().getType(),
                         positions = getPositions().getType();
  const auto axis = static_cast<int64_t>(getAxis());
  if (failed(verifyAxis(*this, axis, source.getRank())))
    return failure();
  if (result.getElementType() != source.getElementType() || result.getRank() != source.getRank() ||
      withoutAxis(result.getShape(), axis) != withoutAxis(source.getShape(), axis) ||
      result.getDimSize(axis) > source.getDimSize(axis))
    return emitOpError("expected a result like its source with no more along the axis, but got ")
           << source << " and " << result;
  if (!positions.getElementType().isInteger(32) || positions.getShape() != result.getShape())
    return emitOpError("expected positions of i32, one for each of ") << result << ", but got " << positions;
  if (!getTies())
    return success();
  if (!isOfKeys())
    return emitOpError("expected i32 or i64 in ascending order where 'by' is given, but got ") << source;
  const RankedTensorType ties = getTies().getType();
  if (!ties.getElementType().isInteger(32) || ties.getShape() != source.getShape())
    return emitOpError("expected numbers of i32 for each of ") << source << ", but got " << ties;
  return success();
}

/// Along an axis of extent 1, every element stays.
LogicalResult SortOp::canonicalize(SortOp op, PatternRewriter &rewriter) {
  if (op.getExtent() != 1)
    return rewriter.notifyMatchFailure(op, "there is more than one element to order");
  const Value positions =
      op.getTies() ? Value(op.getTies())
                   : arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getZeroAttr(op.getPositions().getType()))
                         .getResult();
  rewriter.replaceOp(op, {op.getSource(), positions});
  return success();
}

LogicalResult TakeOp::verify() {
  const RankedTensorType source = getSource().getType(), index = getIndex().getType(), result = getResult().getType();
  const auto axis = static_cast<int64_t>(getAxis());
  if (failed(verifyAxis(*this, axis, source.getRank())))
    return failure();
  if (index.getRank() != source.getRank() ||
      withoutAxis(index.getShape(), axis) != withoutAxis(source.getShape(), axis))
    return emitOpError("expected extents that agree except along axis ")
           << axis << ", but got " << source << " and " << index;
  if (result.getElementType() != source.getElementType() || result.getShape() != index.getShape())
    return emitOpError("expected a result of elements of ")
           << source << " for each of " << index << ", but got " << result;
  return success();
}

LogicalResult HistogramOp::verify() {
  const RankedTensorType result = getResult().getType();
  if (result.getRank() != 1 || !result.getElementType().isInteger(32))
    return emitOpError("expected counts of i32 in a tile of rank 1, but got ") << result;
  if (getMask() && getMask().getType().getShape() != getSource().getType().getShape())
    return emitOpError("expected a mask for ") << getSource().getType() << ", but got " << getMask().getType();
  return success();
}

} // namespace kiln::tile

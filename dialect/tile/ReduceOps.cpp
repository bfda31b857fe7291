// Verifiers of reductions, scans and the matrix product.

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

/// Bitwise kinds require integers.
static LogicalResult verifyKind(Operation *op, ReduceKind kind, RankedTensorType source) {
  const bool isBitwise = kind == ReduceKind::And || kind == ReduceKind::Or || kind == ReduceKind::Xor;
  if (!isBitwise || !isa<FloatType>(source.getElementType()))
    return success();
  return op->emitOpError("expected integers for '")
         << stringifyReduceKind(kind) << "', but got " << source.getElementType();
}

LogicalResult ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (failed(verifyAxis(*this, getAxis(), source.getRank())) || failed(verifyKind(*this, getKind(), source)))
    return failure();
  Type expected = resultType(getKind(), source, getAxis());
  const bool isExpected = getElementTypeOrSelf(expected) == getElementTypeOrSelf(getType()) && // with any encoding
                          isa<RankedTensorType>(expected) == isa<RankedTensorType>(getType()) &&
                          shapeOf(expected) == shapeOf(getType());
  if (!isExpected)
    return emitOpError("expected a result of type ") << expected << ", but got " << getType();
  return success();
}

/// Along an axis of extent 1, the element is the result, and its index is 0.
LogicalResult ReduceOp::canonicalize(ReduceOp op, PatternRewriter &rewriter) {
  if (shapeOf(op.getSource().getType())[op.getAxis()] != 1)
    return rewriter.notifyMatchFailure(op, "there is more than one element to combine");
  if (op.getKind() == ReduceKind::ArgMax)
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, cast<TypedAttr>(rewriter.getZeroAttr(op.getType())));
  else
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getSource());
  return success();
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind, Value source, int64_t axis,
                   bool reverse) {
  build(builder, state, source.getType(), ReduceKindAttr::get(builder.getContext(), kind), source,
        builder.getI64IntegerAttr(axis), reverse ? builder.getUnitAttr() : UnitAttr());
}

LogicalResult ScanOp::verify() {
  if (getSources().empty())
    return emitOpError("expected a tile to scan");
  auto source = cast<RankedTensorType>(getSources()[0].getType());
  if (failed(verifyAxis(*this, getAxis(), source.getRank())))
    return failure();
  if (getKind().has_value() == !getBy().empty())
    return emitOpError("expected either a kind or a function");
  if (getKind() && getSources().size() != 1)
    return emitOpError("expected one tile for '")
           << stringifyReduceKind(*getKind()) << "', but got " << getSources().size();
  if (getKind() == ReduceKind::ArgMax)
    return emitOpError("expected another kind than 'argmax'");
  if (getReverse() && !getKind())
    return emitOpError("expected a kind where the scan is reversed");
  if (!llvm::equal(getSources().getTypes(), getResultTypes()))
    return emitOpError("expected results of the types ") << getSources().getTypes() << ", but got " << getResultTypes();
  for (Type type : getSources().getTypes())
    if (shapeOf(type) != source.getShape())
      return emitOpError("expected tiles of one shape, but got ") << shapeText(source) << " and " << shapeText(type);
  return getKind() ? verifyKind(*this, *getKind(), source) : success();
}

/// Verifies the region: two scalar arguments and one result for each tile, and only scalar arithmetic.
LogicalResult ScanOp::verifyRegions() {
  if (getBy().empty())
    return success();
  SmallVector<Type> elements;
  for (Type type : getSources().getTypes())
    elements.push_back(getElementTypeOrSelf(type));
  SmallVector<Type> states(elements);
  states.append(elements);
  Block &body = getBy().front();
  if (!llvm::equal(body.getArgumentTypes(), states))
    return emitOpError("expected a function of (") << states << "), but got (" << body.getArgumentTypes() << ")";
  if (!llvm::equal(body.getTerminator()->getOperandTypes(), elements))
    return emitOpError("expected a function that yields (")
           << elements << "), but got (" << body.getTerminator()->getOperandTypes() << ")";
  for (Operation &op : body) {
    const bool isKnown = isa<YieldOp, CastOp, DivOp, RemOp, ShlOp, ShrOp>(op) ||
                         isa<arith::ArithDialect>(op.getDialect()) || op.getName().getDialectNamespace() == "math";
    if (!isKnown)
      return op.emitOpError("expected arithmetic in the function of a scan");
    for (Value operand : op.getOperands())
      if (isa<ShapedType>(operand.getType()))
        return op.emitOpError("expected scalars in the function of a scan, but got ") << operand.getType();
  }
  return success();
}

LogicalResult YieldOp::verify() {
  Operation *const parent = (*this)->getParentOp();
  if (isa<ScanOp>(parent) || parent->getName().getDialectNamespace() == "simt") // a scan that is being lowered
    return success();
  return emitOpError("expected a 'tile.scan' around it, but got '") << parent->getName() << "'";
}

/// Along an axis of extent 1, every element stays.
LogicalResult ScanOp::canonicalize(ScanOp op, PatternRewriter &rewriter) {
  if (shapeOf(op.getSources()[0].getType())[op.getAxis()] != 1)
    return rewriter.notifyMatchFailure(op, "there is more than one element to combine");
  rewriter.replaceOp(op, op.getSources());
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType()),
       acc = cast<RankedTensorType>(getAcc().getType());
  const int64_t rank = a.getRank();
  if (rank < 2 || b.getRank() != rank || acc.getRank() != rank)
    return emitOpError("expected tiles of the same rank, 2 or more, but got ranks ")
           << rank << ", " << b.getRank() << " and " << acc.getRank();
  if (a.getShape().drop_back(2) != b.getShape().drop_back(2))
    return emitOpError("expected leading sizes to match, but got ") << shapeText(a) << " and " << shapeText(b);
  if (a.getDimSize(rank - 1) != b.getDimSize(rank - 2))
    return emitOpError("expected inner sizes to match, but got ") << shapeText(a) << " and " << shapeText(b);
  SmallVector<int64_t> sums(a.getShape().drop_back());
  sums.push_back(b.getDimSize(rank - 1));
  if (acc.getShape() != ArrayRef(sums))
    return emitOpError("expected an accumulator of shape ")
           << shapeText(RankedTensorType::get(sums, acc.getElementType())) << ", but got " << shapeText(acc);
  Type operand = a.getElementType();
  const auto isFactor = [](Type type) { return isByteFloat(type) && !isScale(type); };
  if (operand != b.getElementType() && !(isFactor(operand) && isFactor(b.getElementType())))
    return emitOpError("expected operands of one element type, but got ") << operand << " and " << b.getElementType();
  if ((*this)->hasAttr(factorsName)) {
    if ((operand.isInteger(8) || isFactor(operand)) && acc.getElementType().isF32())
      return success();
    return emitOpError("expected bytes and sums of f32 with '")
           << factorsName << "', but got " << operand << " and " << acc.getElementType();
  }
  // Widened integers are operands of the dialect, but not of the language.
  Type sum = operand.isInteger(32) ? operand : sumTypeOf(operand);
  if (!sum)
    return emitOpError("expected operands of type ") << dotOperands << ", but got " << operand;
  if (acc.getElementType() != sum)
    return emitOpError("expected an accumulator of ")
           << sum << " for operands of " << operand << ", but got " << acc.getElementType();
  return success();
}

} // namespace kiln::tile

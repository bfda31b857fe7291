// Verifiers and folds of the operations that create or reshape tiles.

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile {

static int64_t countOf(Type type) {
  int64_t count = 1;
  for (int64_t extent : shapeOf(type))
    count *= extent;
  return count;
}

/// Source and result must have one element type.
static LogicalResult verifySameElement(Operation *op, Type source, Type result) {
  Type from = getElementTypeOrSelf(source), to = getElementTypeOrSelf(result);
  if (from == to)
    return success();
  return op->emitOpError("expected a result of element type ") << from << ", but got " << to;
}

LogicalResult IotaOp::verify() {
  if (shapeOf(getType()).size() != 1)
    return emitOpError("expected a result of rank 1, but got shape ") << shapeText(getType());
  return success();
}

LogicalResult SplatOp::verify() { return verifySameElement(*this, getSource().getType(), getType()); }

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (auto source = adaptor.getSource())
    return DenseElementsAttr::get(cast<ShapedType>(getType()), source);
  return {};
}

/// Every element is the scalar, which has no position.
AffineMap SplatOp::getMoveMap() { return AffineMap::get(shapeOf(getType()).size(), 0, getContext()); }

/// The dimensions whose extents are not 1.
static SmallVector<unsigned> properDimensions(ArrayRef<int64_t> shape) {
  SmallVector<unsigned> proper;
  for (auto [axis, extent] : llvm::enumerate(shape))
    if (extent != 1)
      proper.push_back(axis);
  return proper;
}

/// The row-major order is kept. Dimensions of source and result are grouped minimally by equal numbers of elements. A
/// group of one dimension each is mapped directly; for others the linear index is decomposed. Extents of 1 do not
/// matter.
AffineMap ReshapeOp::getMoveMap() {
  auto from = shapeOf(getSource().getType()), to = shapeOf(getType());
  const SmallVector<unsigned> inner = properDimensions(from), outer = properDimensions(to);
  SmallVector<AffineExpr> position(from.size(), getAffineConstantExpr(0, getContext()));
  for (size_t i = 0, o = 0; i < inner.size();) {
    size_t iEnd = i + 1, oEnd = o + 1;
    for (int64_t below = from[inner[i]], above = to[outer[o]]; below != above;)
      if (below < above)
        below *= from[inner[iEnd++]];
      else
        above *= to[outer[oEnd++]];
    AffineExpr linear = getAffineDimExpr(outer[o], getContext());
    while (++o < oEnd)
      linear = linear * to[outer[o]] + getAffineDimExpr(outer[o], getContext());
    for (size_t axis = iEnd; axis-- > i;) {
      position[inner[axis]] = axis == i ? linear : linear % from[inner[axis]];
      linear = linear.floorDiv(from[inner[axis]]);
    }
    i = iEnd;
  }
  return AffineMap::get(to.size(), 0, position, getContext());
}

LogicalResult ReshapeOp::verify() {
  if (failed(verifySameElement(*this, getSource().getType(), getType())))
    return failure();
  if (countOf(getSource().getType()) != countOf(getType()))
    return emitOpError("expected as many elements as the source's ")
           << countOf(getSource().getType()) << " (" << shapeText(getSource().getType()) << "), but got "
           << countOf(getType()) << " (" << shapeText(getType()) << ")";
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  // A splat that is reshaped to a scalar folds to the splat's scalar.
  auto shaped = dyn_cast<RankedTensorType>(getType());
  if (auto splat = getSource().getDefiningOp<SplatOp>(); splat && !shaped)
    return splat.getSource();
  auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource());
  if (dense)
    return shaped ? OpFoldResult(dense.reshape(shaped)) : OpFoldResult(*dense.value_begin<Attribute>());
  if (adaptor.getSource())
    return DenseElementsAttr::get(shaped, adaptor.getSource());
  return {};
}

/// A constant with one value in each element, in another shape; null for other constants.
static OpFoldResult splatLike(Attribute source, Type type) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(source);
  return dense && dense.isSplat() ? OpFoldResult(dense.resizeSplat(cast<ShapedType>(type))) : OpFoldResult();
}

/// A splat stays one under any shape: the result of `op`, from a splat, as one.
template <class Op> static LogicalResult canonicalizeSplat(Op op, PatternRewriter &rewriter) {
  auto splat = op.getSource().template getDefiningOp<SplatOp>();
  if (!splat)
    return rewriter.notifyMatchFailure(op, "the source is no splat");
  rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSource());
  return success();
}

/// A scalar under a shape is a splat.
LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  if (!isa<RankedTensorType>(op.getType()))
    return rewriter.notifyMatchFailure(op, "the result is a scalar");
  if (isa<RankedTensorType>(op.getSource().getType()))
    return canonicalizeSplat(op, rewriter);
  rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), op.getSource());
  return success();
}

AffineMap BroadcastOp::getMoveMap() {
  SmallVector<AffineExpr> position;
  auto from = shapeOf(getSource().getType()), to = shapeOf(getType());
  for (auto [axis, extent] : llvm::enumerate(from))
    position.push_back(extent == to[axis] ? getAffineDimExpr(axis, getContext())
                                          : getAffineConstantExpr(0, getContext()));
  return AffineMap::get(to.size(), 0, position, getContext());
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifySameElement(*this, getSource().getType(), getType())))
    return failure();
  auto from = shapeOf(getSource().getType()), to = shapeOf(getType());
  if (from.size() != to.size())
    return emitOpError("expected a result of the source's rank ") << from.size() << ", but got " << to.size();
  for (auto [axis, pair] : llvm::enumerate(llvm::zip(from, to))) {
    auto [source, result] = pair;
    if (source != result && source != 1)
      return emitOpError("expected extent 1 or ")
             << result << " in dimension " << axis << " of the source, but got " << source;
  }
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<BroadcastOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return splatLike(adaptor.getSource(), getType());
}

LogicalResult BroadcastOp::canonicalize(BroadcastOp op, PatternRewriter &rewriter) {
  return canonicalizeSplat(op, rewriter);
}

AffineMap TransposeOp::getMoveMap() {
  SmallVector<unsigned> order(getPermutation().size());
  for (auto [axis, source] : llvm::enumerate(getPermutation()))
    order[source] = axis;
  return AffineMap::getPermutationMap(order, getContext());
}

LogicalResult TransposeOp::verify() {
  if (failed(verifySameElement(*this, getSource().getType(), getType())))
    return failure();
  auto from = shapeOf(getSource().getType()), to = shapeOf(getType());
  auto permutation = getPermutation();
  SmallVector<bool> seen(from.size(), false);
  for (int64_t axis : permutation)
    if (axis >= 0 && axis < static_cast<int64_t>(from.size()))
      seen[axis] = true;
  if (permutation.size() != from.size() || !llvm::all_of(seen, [](bool b) { return b; }))
    return emitOpError("expected a permutation of the source's ")
           << from.size() << " dimensions, but got [" << permutation << "]";
  if (to.size() != from.size())
    return emitOpError("expected a result of the source's rank ") << from.size() << ", but got " << to.size();
  for (auto [axis, source] : llvm::enumerate(permutation))
    if (to[axis] != from[source])
      return emitOpError("expected extent ")
             << from[source] << " in dimension " << axis << " of the result, but got " << to[axis];
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  bool identity = true;
  for (auto [axis, source] : llvm::enumerate(getPermutation()))
    identity &= static_cast<int64_t>(axis) == source;
  if (identity)
    return getSource();
  if (auto inner = getSource().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t axis : getPermutation())
      composed.push_back(inner.getPermutation()[axis]);
    setPermutation(composed);
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return splatLike(adaptor.getSource(), getType());
}

/// Whether dimensions of extent above 1 keep their order, so that no element moves.
static bool movesNothing(TransposeOp op) {
  auto from = shapeOf(op.getSource().getType());
  int64_t last = -1;
  for (int64_t axis : op.getPermutation()) {
    if (from[axis] == 1)
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

LogicalResult TransposeOp::canonicalize(TransposeOp op, PatternRewriter &rewriter) {
  if (succeeded(canonicalizeSplat(op, rewriter)))
    return success();
  if (!movesNothing(op))
    return rewriter.notifyMatchFailure(op, "elements change places");
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getSource());
  return success();
}

/// The element at i is the source's element at (i − by) modulo the extent.
AffineMap RotateOp::getMoveMap() {
  SmallVector<AffineExpr> position;
  const auto shape = shapeOf(getType());
  for (auto [axis, extent] : llvm::enumerate(shape))
    position.push_back(getAffineDimExpr(axis, getContext()));
  const int64_t axis = getAxis();
  position[axis] = (position[axis] + (shape[axis] - static_cast<int64_t>(getBy()))) % shape[axis];
  return AffineMap::get(shape.size(), 0, position, getContext());
}

LogicalResult RotateOp::verify() {
  const auto shape = shapeOf(getType());
  const int64_t rank = shape.size(), axis = getAxis(), by = getBy();
  if (failed(verifyAxis(*this, axis, rank)))
    return failure();
  if (by < 0 || by >= shape[axis])
    return emitOpError("expected to rotate by 0 to ") << shape[axis] - 1 << ", but got " << by;
  return success();
}

OpFoldResult RotateOp::fold(FoldAdaptor adaptor) {
  if (getBy() == 0 || getSource().getDefiningOp<SplatOp>())
    return getSource();
  if (auto inner = getSource().getDefiningOp<RotateOp>(); inner && inner.getAxis() == getAxis()) {
    setBy((getBy() + inner.getBy()) % shapeOf(getType())[getAxis()]);
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return splatLike(adaptor.getSource(), getType());
}

AffineMap ExtractOp::getMoveMap() {
  SmallVector<AffineExpr> position;
  for (auto [axis, step] : llvm::enumerate(getSteps()))
    position.push_back(getAffineDimExpr(axis, getContext()) * step + getBegin()[axis]);
  // Along an extent of 1 the step does not matter.
  for (auto [axis, extent] : llvm::enumerate(shapeOf(getType())))
    if (extent == 1)
      position[axis] = getAffineConstantExpr(getBegin()[axis], getContext());
  return AffineMap::get(position.size(), 0, position, getContext());
}

LogicalResult ExtractOp::verify() {
  if (failed(verifySameElement(*this, getSource().getType(), getType())))
    return failure();
  const auto from = shapeOf(getSource().getType()), to = shapeOf(getType());
  for (const auto &[what, count] : {std::pair("a begin", getBegin().size()), std::pair("a step", getSteps().size()),
                                    std::pair("an extent of the result", to.size())})
    if (count != from.size())
      return emitOpError("expected ") << what << " for each of " << from.size() << " dimensions, but got " << count;
  for (const auto [axis, extent] : llvm::enumerate(from)) {
    const int64_t begin = getBegin()[axis], step = getSteps()[axis];
    int64_t last = 0;
    if (step == 0 && to[axis] > 1)
      return emitOpError("expected a step that is not 0 in dimension ") << axis;
    if (llvm::MulOverflow(to[axis] - 1, step, last) || llvm::AddOverflow(begin, last, last))
      return emitOpError("expected positions from 0 to ") << extent - 1 << " in dimension " << axis << ", but got "
                                                          << begin << " and " << to[axis] - 1 << " steps of " << step;
    if (std::min(begin, last) < 0 || std::max(begin, last) >= extent)
      return emitOpError("expected positions from 0 to ")
             << extent - 1 << " in dimension " << axis << ", but got " << begin << " to " << last;
  }
  return success();
}

OpFoldResult ExtractOp::fold(FoldAdaptor adaptor) {
  const bool isWhole = llvm::all_of(getBegin(), [](int64_t begin) { return begin == 0; });
  if (isWhole && getSource().getType() == getType()) // then steps are 1 or do not matter
    return getSource();
  if (auto inner = getSource().getDefiningOp<ExtractOp>()) {
    SmallVector<int64_t> begin, steps;
    for (const auto [axis, step] : llvm::enumerate(getSteps())) {
      begin.push_back(inner.getBegin()[axis] + getBegin()[axis] * inner.getSteps()[axis]);
      steps.push_back(step * inner.getSteps()[axis]);
    }
    setBegin(begin);
    setSteps(steps);
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return splatLike(adaptor.getSource(), getType());
}

LogicalResult ExtractOp::canonicalize(ExtractOp op, PatternRewriter &rewriter) {
  return canonicalizeSplat(op, rewriter);
}

} // namespace kiln::tile

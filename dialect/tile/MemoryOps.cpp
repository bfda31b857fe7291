// Verifiers, effects and folds of the memory operations.

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::tile {

/// The element type that a view stores for tiles of `element`: bool is stored as i8.
static bool storesElement(Type stored, Type element) {
  return stored == element || (element.isInteger(1) && stored.isInteger(8));
}

static LogicalResult verifyElement(Operation *op, Type view, Type tile) {
  Type stored = cast<MemRefType>(view).getElementType(), element = getElementTypeOrSelf(tile);
  if (storesElement(stored, element))
    return success();
  return op->emitOpError("expected a tile of the view's element type ") << stored << ", but got " << element;
}

/// Tile and view have one rank, and there is one offset for each dimension from `first` on.
static LogicalResult verifyAccess(Operation *op, Type view, Type tile, size_t offsets, size_t first) {
  if (failed(verifyElement(op, view, tile)))
    return failure();
  size_t rank = shapeOf(view).size();
  if (shapeOf(tile).size() != rank)
    return op->emitOpError("expected a tile of the view's rank ") << rank << ", but got " << shapeOf(tile).size();
  if (offsets + first != rank)
    return op->emitOpError("expected ") << rank - first << " offsets for a view of rank " << rank << ", but got "
                                        << offsets;
  return success();
}

static LogicalResult verifyRows(Operation *op, Type rows, Type tile) {
  auto shape = shapeOf(rows);
  if (shape.size() != 1)
    return op->emitOpError("expected an index tile of rank 1, but got shape ") << shapeText(rows);
  if (shapeOf(tile).empty() || shape[0] != shapeOf(tile)[0])
    return op->emitOpError("expected one row index for each of the tile's rows, but got ")
           << shape[0] << " indices and a tile of shape " << shapeText(tile);
  return success();
}

static LogicalResult verifyPadding(Operation *op, Padding padding, Type tile) {
  if (padding == Padding::Zero || isa<FloatType>(getElementTypeOrSelf(tile)))
    return success();
  return op->emitOpError("expected padding 'zero' on a tile of integers, but got '")
         << stringifyPadding(padding) << "'";
}

LogicalResult DimOp::verify() {
  int64_t rank = shapeOf(getView().getType()).size(), axis = getAxis();
  if (axis < 0 || axis >= rank)
    return emitOpError("expected an axis from 0 to ") << rank - 1 << ", but got " << axis;
  return success();
}

OpFoldResult DimOp::fold(FoldAdaptor) {
  int64_t extent = shapeOf(getView().getType())[getAxis()];
  return ShapedType::isDynamic(extent) ? OpFoldResult() : IntegerAttr::get(getType(), extent);
}

LogicalResult LoadOp::verify() {
  if (failed(verifyPadding(*this, getPadding(), getType())))
    return failure();
  return verifyAccess(*this, getView().getType(), getType(), getOffsets().size(), 0);
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getView().getType(), getValue().getType(), getOffsets().size(), 0);
}

LogicalResult GatherOp::verify() {
  if (failed(verifyPadding(*this, getPadding(), getType())) ||
      failed(verifyRows(*this, getRows().getType(), getType())))
    return failure();
  return verifyAccess(*this, getView().getType(), getType(), getOffsets().size(), 1);
}

LogicalResult ScatterOp::verify() {
  if (failed(verifyRows(*this, getRows().getType(), getValue().getType())))
    return failure();
  return verifyAccess(*this, getView().getType(), getValue().getType(), getOffsets().size(), 1);
}

LogicalResult AtomicAddOp::verify() {
  Type element = getElementTypeOrSelf(getValue().getType());
  if (!isAtomic(element))
    return emitOpError("expected elements of type ") << atomicElements << ", but got " << element;
  return verifyAccess(*this, getView().getType(), getValue().getType(), getOffsets().size(), 0);
}

void AtomicAddOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getViewMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getViewMutable());
  if (getOrder() == MemoryOrder::Relaxed)
    return;
  effects.emplace_back(MemoryEffects::Read::get()); // an order other than relaxed fences the whole memory
  effects.emplace_back(MemoryEffects::Write::get());
}

} // namespace kiln::tile

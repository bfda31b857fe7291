// Verifiers, effects and folds of the memory operations.

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::tile {

/// The element type that a view stores for tiles of `element`: bool is stored as i8.
static bool storesElement(Type stored, Type element) {
  return stored == element || (element.isInteger(1) && stored.isInteger(8));
}

static LogicalResult verifyRows(AccessOp access, Value rows) {
  auto shape = shapeOf(rows.getType()), tile = access.getTile().getType().getShape();
  if (shape.size() != 1)
    return access->emitOpError("expected an index tile of rank 1, but got shape ") << shapeText(rows.getType());
  if (tile.empty() || shape[0] != tile[0])
    return access->emitOpError("expected one row index for each of the tile's rows, but got ")
           << shape[0] << " indices and a tile of shape " << shapeText(access.getTile().getType());
  return success();
}

/// Tile and view agree in element type and rank, and there is one subscript for each dimension.
static LogicalResult verifyAccess(AccessOp access) {
  const RankedTensorType tile = access.getTile().getType();
  const MemRefType view = access.getView().getType();
  const Value rows = access.getRowNumbers();
  if (access.getPadding() != Padding::Zero && !isa<FloatType>(tile.getElementType()))
    return access->emitOpError("expected padding 'zero' on a tile of integers, but got '")
           << stringifyPadding(access.getPadding()) << "'";
  if (rows && failed(verifyRows(access, rows)))
    return failure();
  if (!storesElement(view.getElementType(), tile.getElementType()))
    return access->emitOpError("expected a tile of the view's element type ")
           << view.getElementType() << ", but got " << tile.getElementType();
  if (tile.getRank() != view.getRank())
    return access->emitOpError("expected a tile of the view's rank ")
           << view.getRank() << ", but got " << tile.getRank();
  const int64_t begins = access.getBegins().size(), dims = view.getRank() - (rows ? 1 : 0);
  if (begins != dims)
    return access->emitOpError("expected ")
           << dims << " offsets for a view of rank " << view.getRank() << ", but got " << begins;
  return success();
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

LogicalResult LoadOp::verify() { return verifyAccess(*this); }
LogicalResult StoreOp::verify() { return verifyAccess(*this); }
LogicalResult GatherOp::verify() { return verifyAccess(*this); }
LogicalResult ScatterOp::verify() { return verifyAccess(*this); }

LogicalResult AtomicAddOp::verify() {
  Type element = getElementTypeOrSelf(getValue().getType());
  if (!isAtomic(element))
    return emitOpError("expected elements of type ") << atomicElements << ", but got " << element;
  return verifyAccess(*this);
}

void AtomicAddOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getViewMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getViewMutable());
  if (!ordersAll())
    return;
  effects.emplace_back(MemoryEffects::Read::get()); // an order other than relaxed fences the whole memory
  effects.emplace_back(MemoryEffects::Write::get());
}

} // namespace kiln::tile

// Verifiers of sorts, gathers and histograms on tiles with layouts.

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TypeRules.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::simt {

std::pair<unsigned, unsigned> SortOp::stageOf(int64_t number) {
  unsigned level = 1;
  while (numStages(level) <= number)
    ++level;
  return {level, level - 1 - static_cast<unsigned>(number - numStages(level - 1))};
}

LogicalResult SortOp::verify() {
  if (getSources().empty() || getSources().size() > 2 || !llvm::equal(getSources().getTypes(), getResultTypes()))
    return emitOpError("expected one tile or two, and results of their types");
  const LayoutAttr attribute = layoutOf(getSources()[0]);
  for (const Value source : getSources())
    if (layoutOf(source) != attribute || !getElementTypeOrSelf(source).isInteger())
      return emitOpError("expected integers in one layout, but got ") << source.getType();
  const TileLayout layout = attribute.getLayout();
  const int64_t axis = static_cast<int64_t>(getAxis());
  if (failed(tile::verifyAxis(*this, axis, layout.rank())))
    return failure();
  const int64_t extent = layout.shape()[static_cast<unsigned>(axis)].size;
  if (!llvm::isPowerOf2_64(extent))
    return emitOpError("expected a power of two along the axis, but got ") << extent;
  const ArrayRef<int64_t> stages = getStages();
  const int64_t most = numStages(llvm::Log2_64(extent));
  if (stages.size() != 2 || stages[0] < 0 || stages[0] > stages[1] || stages[1] > most)
    return emitOpError("expected stages [from, to] up to ") << most << ", but got [" << stages << "]";
  const auto bits = layout.axisBits(static_cast<unsigned>(axis));
  for (int64_t stage = stages[0]; stage < stages[1]; ++stage)
    if (const Hw part = bits[stageOf(stage).second].part; part != Hw::reg && part != Hw::lane)
      return emitOpError("expected stages that warps do alone, but got ") << stage;
  return success();
}

/// Positions in shared memory, i32.
static LogicalResult verifyPlaces(Operation *op, RankedTensorType places) {
  if (places.getElementType().isInteger(32))
    return success();
  return op->emitOpError("expected places of i32, but got ") << places;
}

LogicalResult LookUpOp::verify() {
  if (getResult().getType().getShape() != getPlaces().getType().getShape() ||
      layoutOf(getResult()) != layoutOf(getPlaces()))
    return emitOpError("expected a place for each element in its layout, but got ")
           << getPlaces().getType() << " and " << getResult().getType();
  return verifyPlaces(*this, getPlaces().getType());
}

LogicalResult CountOp::verify() { return verifyPlaces(*this, getPlaces().getType()); }

} // namespace kiln::simt

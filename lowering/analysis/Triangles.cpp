// Finds triangles: masks of the form `column - row <= shift`, with both positions relative to the tile's corner, so
// that the difference does not wrap.

#include "lowering/analysis/Triangles.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering {

/// The axis whose positions the elements of `tile` are; -1 if there is none.
static int positionAxis(Value tile) {
  auto rank = static_cast<unsigned>(tile::shapeOf(tile.getType()).size());
  AffineMap map = AffineMap::getMultiDimIdentityMap(rank, tile.getContext());
  while (auto move = tile.getDefiningOp<tile::MoveOp>()) {
    map = move.getMoveMap().compose(map);
    tile = move.getMoved();
  }
  if (!tile.getDefiningOp<tile::IotaOp>())
    return -1;
  auto axis = dyn_cast<AffineDimExpr>(map.getResult(0));
  return axis ? static_cast<int>(axis.getPosition()) : -1;
}

/// The scalar that `tile` is a splat of, if any.
static Value scalarOf(Value tile) {
  while (auto move = tile.getDefiningOp<tile::MoveOp>())
    tile = move.getMoved();
  return isa<RankedTensorType>(tile.getType()) ? Value() : tile;
}

std::optional<Triangle> comparisonOf(Value mask) {
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  Value difference = compare.getLhs(), limit = compare.getRhs();
  arith::CmpIPredicate predicate = compare.getPredicate();
  if (scalarOf(difference)) { // the limit is on the left
    std::swap(difference, limit);
    predicate = predicate == arith::CmpIPredicate::sge   ? arith::CmpIPredicate::sle
                : predicate == arith::CmpIPredicate::sgt ? arith::CmpIPredicate::slt
                                                         : arith::CmpIPredicate::eq;
  }
  while (auto wide = difference.getDefiningOp<arith::ExtSIOp>()) // extended for a 64-bit limit
    difference = wide.getIn();
  auto subtract = difference.getDefiningOp<arith::SubIOp>();
  if (!subtract || !scalarOf(limit) ||
      (predicate != arith::CmpIPredicate::sle && predicate != arith::CmpIPredicate::slt))
    return std::nullopt;
  if (tile::shapeOf(subtract.getType()).size() != 2)
    return std::nullopt;
  const int plus = positionAxis(subtract.getLhs()), minus = positionAxis(subtract.getRhs());
  if (plus < 0 || minus < 0 || plus == minus)
    return std::nullopt;
  return Triangle{scalarOf(limit), predicate == arith::CmpIPredicate::slt ? -1 : 0, plus == 0};
}

/// The triangle outside which `mask` is false.
static std::optional<Triangle> triangleOf(Value mask) {
  auto both = mask.getDefiningOp<arith::AndIOp>();
  if (!both)
    return comparisonOf(mask);
  auto first = triangleOf(both.getLhs());
  return first ? first : triangleOf(both.getRhs());
}

std::optional<Triangle> zeroOutside(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return zeroOutside(op->getOperand(0));
  if (auto move = dyn_cast<tile::MoveOp>(op)) {
    AffineMap map = move.getMoveMap();
    auto triangle = map.isPermutation() ? zeroOutside(move.getMoved()) : std::nullopt;
    if (triangle && !map.isIdentity()) // of rank 2, so it swaps the dimensions
      triangle->transposed = !triangle->transposed;
    return triangle;
  }
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select ||
      (!matchPattern(select.getFalseValue(), m_AnyZeroFloat()) && !matchPattern(select.getFalseValue(), m_Zero())))
    return std::nullopt;
  const std::optional<Triangle> triangle = triangleOf(select.getCondition());
  return triangle ? triangle : zeroOutside(select.getTrueValue());
}

std::optional<Triangle> readInside(Value tile) {
  std::optional<Triangle> found;
  const bool allInside = walkUses(tile, [&](OpOperand &use) {
    auto select = dyn_cast<arith::SelectOp>(use.getOwner());
    auto triangle = select && use.getOperandNumber() == 1 ? triangleOf(select.getCondition()) : std::nullopt;
    if (!triangle)
      return isElementwise(use.getOwner()) ? Walk::follow : Walk::giveUp;
    if (found && *found != *triangle)
      return Walk::giveUp;
    found = triangle;
    return Walk::leave;
  });
  return allInside ? found : std::nullopt;
}

} // namespace kiln::lowering

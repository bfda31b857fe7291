// Triangles are found in masks of the form `column - row <= shift`, where both positions are counted from the tile's
// corner: such a difference never wraps, and the comparison means what it says.

#include "lowering/analysis/Triangles.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering {

/// The axis along which `tile`, of rank 2, holds its own position; -1 if it does not.
static int positionAxis(Value tile) {
  while (auto broadcast = tile.getDefiningOp<tile::BroadcastOp>())
    tile = broadcast.getSource();
  auto reshape = tile.getDefiningOp<tile::ReshapeOp>();
  if (!reshape || !reshape.getSource().getDefiningOp<tile::IotaOp>())
    return -1;
  auto shape = tile::shapeOf(tile.getType());
  if (shape.size() != 2 || (shape[0] != 1 && shape[1] != 1))
    return -1;
  return shape[0] == 1 ? 1 : 0;
}

static Value scalarOf(Value tile) {
  while (auto broadcast = tile.getDefiningOp<tile::BroadcastOp>())
    tile = broadcast.getSource();
  auto splat = tile.getDefiningOp<tile::SplatOp>();
  return splat ? Value(splat.getSource()) : Value();
}

/// The triangle outside which `mask` is false.
static std::optional<Triangle> triangleOf(Value mask) {
  if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
    auto first = triangleOf(both.getLhs());
    return first ? first : triangleOf(both.getRhs());
  }
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  Value difference = compare.getLhs(), limit = compare.getRhs();
  arith::CmpIPredicate predicate = compare.getPredicate();
  if (scalarOf(difference)) { // limit on the left
    std::swap(difference, limit);
    predicate = predicate == arith::CmpIPredicate::sge   ? arith::CmpIPredicate::sle
                : predicate == arith::CmpIPredicate::sgt ? arith::CmpIPredicate::slt
                                                         : arith::CmpIPredicate::eq;
  }
  while (auto wide = difference.getDefiningOp<arith::ExtSIOp>()) // beside a limit of 64 bits
    difference = wide.getIn();
  auto subtract = difference.getDefiningOp<arith::SubIOp>();
  if (!subtract || !scalarOf(limit) ||
      (predicate != arith::CmpIPredicate::sle && predicate != arith::CmpIPredicate::slt))
    return std::nullopt;
  const int plus = positionAxis(subtract.getLhs()), minus = positionAxis(subtract.getRhs());
  if (plus < 0 || minus < 0 || plus == minus)
    return std::nullopt;
  return Triangle{scalarOf(limit), predicate == arith::CmpIPredicate::slt ? -1 : 0, plus == 0};
}

std::optional<Triangle> zeroOutside(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return zeroOutside(op->getOperand(0));
  if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    auto triangle = zeroOutside(transpose.getSource());
    if (triangle) // of rank 2: it swaps
      triangle->transposed = !triangle->transposed;
    return triangle;
  }
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select ||
      (!matchPattern(select.getFalseValue(), m_AnyZeroFloat()) && !matchPattern(select.getFalseValue(), m_Zero())))
    return std::nullopt;
  return triangleOf(select.getCondition());
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

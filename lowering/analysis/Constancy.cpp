// Analyses a tile along one dimension through its defining operations: the size of aligned groups in which it is
// constant, of those in which it grows by 1, and a divisor of each group's first value.

#include "lowering/analysis/Constancy.h"

#include "lowering/analysis/Divisibility.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering {

static constexpr int64_t ever = int64_t(1) << 30;

namespace {
struct Along {
  int64_t same = 1, grows = 1; // powers of two
  int64_t divisor = 1;         // of the first value of a group of `same` or `grows`
};
} // namespace

static Along along(Value tile, int64_t dim, int effort);

static int64_t divisorOfNumber(const APInt &number) {
  return number.isZero() ? ever : int64_t(1) << std::min(30u, number.countr_zero());
}

/// A divisor of a scalar. It uses the launch's fact about the last extent of a view.
static int64_t divisorOfScalar(Value scalar) {
  int64_t divisor = divisorOf(scalar);
  if (auto extent = scalar.getDefiningOp<tile::DimOp>()) {
    const bool isLast = static_cast<int64_t>(extent.getAxis()) + 1 == extent.getView().getType().getRank();
    if (isLast && factOf(extent.getView(), "tile.extent_by_16"))
      divisor = std::max<int64_t>(divisor, 16);
  }
  return divisor;
}

static Along alongMove(tile::MoveOp move, int64_t dim, int effort) {
  const Value source = move.getMoved();
  if (!isa<RankedTensorType>(source.getType()))
    return {ever, 1, source.getType().isInteger() ? divisorOfScalar(source) : 1};
  const AffineMap map = move.getMoveMap();
  if (auto inner = axisBelow(move, dim))
    return along(source, *inner, effort);
  if (!map.isFunctionOfDim(static_cast<unsigned>(dim)))
    return {ever, 1, 1};
  return {};
}

/// The size of the groups in which a comparison is constant. x < y is constant in a group if x counts up from a
/// multiple of the group's size, and y is constant and a multiple of that size. So is its negation.
static int64_t comparedAlong(arith::CmpIOp compare, const Along &x, const Along &y) {
  using P = arith::CmpIPredicate;
  const P predicate = compare.getPredicate();
  const auto group = [](const Along &moving, const Along &fixed) {
    return std::min({moving.grows, moving.divisor, fixed.same, fixed.divisor});
  };
  int64_t result = std::min(x.same, y.same);
  if (predicate == P::slt || predicate == P::ult || predicate == P::sge || predicate == P::uge)
    result = std::max(result, group(x, y));
  if (predicate == P::sgt || predicate == P::ugt || predicate == P::sle || predicate == P::ule)
    result = std::max(result, group(y, x));
  return result;
}

static Along along(Value tile, int64_t dim, int effort) {
  Operation *op = tile.getDefiningOp();
  APInt number;
  if (matchPattern(tile, m_ConstantInt(&number)))
    return {ever, 1, divisorOfNumber(number)};
  if (!op || effort == 0)
    return {};
  if (isa<tile::IotaOp>(op))
    return {1, ever, ever};
  if (auto move = dyn_cast<tile::MoveOp>(op))
    return alongMove(move, dim, effort - 1);
  if (!isElementwise(op) || llvm::any_of(op->getOperandTypes(), [](Type type) { return !isa<RankedTensorType>(type); }))
    return {};
  SmallVector<Along, 3> operands;
  for (Value operand : op->getOperands())
    operands.push_back(along(operand, dim, effort - 1));
  Along result{ever, 1, 1};
  for (const Along &operand : operands)
    result.same = std::min(result.same, operand.same);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return {comparedAlong(compare, operands[0], operands[1]), 1, 1};
  if (isa<arith::AddIOp>(op)) {
    const Along &a = operands[0], &b = operands[1];
    result.grows = std::max(std::min(a.grows, b.same), std::min(a.same, b.grows));
    result.divisor = std::min(a.divisor, b.divisor);
  }
  // A group does not wrap, because its first value is a multiple of its size.
  if (isa<arith::ExtSIOp, arith::ExtUIOp>(op))
    return operands[0];
  return result;
}

int64_t constantAlong(Value tile, int64_t dim) { return along(tile, dim, /*effort=*/16).same; }

} // namespace kiln::lowering

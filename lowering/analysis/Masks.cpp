// Finds runs, intervals and triangles of masks through the operations that compute them.

#include "lowering/analysis/Masks.h"

#include "lowering/analysis/Integers.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering {

// --- Runs of equal elements ------------------------------------------------------------------------------------------

// Analyses a tile along one dimension through its defining operations. It finds the size of aligned groups in which the
// tile is constant, of those in which it grows by 1, and a divisor of each group's first value.

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
    if (isLast && viewFact(extent.getView(), "tile.extent_by_16"))
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

// --- Intervals -------------------------------------------------------------------------------------------------------

// Comparisons of tiles that are monotonic along an axis. Whether a sum wraps is seen from its first and last elements,
// if one operand is constant along the axis.

namespace {
/// Monotonicity along an axis; a constant tile both rises and falls.
struct Trend {
  bool rises = false, falls = false; // not strictly

  bool isSteady() const { return rises && falls; }
  Trend negated() const { return {falls, rises}; }
  Trend with(Trend other) const { return {rises && other.rises, falls && other.falls}; }
};
constexpr Trend steady{true, true};
} // namespace

/// The operand's axis that becomes `axis` of the result of `move`: -1 if the result is constant along it, none if it
/// depends on `axis` in any other way.
static std::optional<int64_t> sourceAxis(tile::MoveOp move, int64_t axis) {
  int64_t found = -1;
  for (auto [number, expr] : llvm::enumerate(move.getMoveMap().getResults())) {
    if (!expr.isFunctionOfDim(axis))
      continue;
    if (found >= 0 || expr != getAffineDimExpr(axis, move.getContext()))
      return std::nullopt;
    found = static_cast<int64_t>(number);
  }
  return found;
}

/// Whether a signed sum, difference or product of numbers in these ranges can wrap.
template <class Op> static bool canWrap(const ConstantIntRanges &a, const ConstantIntRanges &b) {
  for (const APInt &x : {a.smin(), a.smax()})
    for (const APInt &y : {b.smin(), b.smax()}) {
      bool wraps = false;
      if constexpr (std::is_same_v<Op, arith::AddIOp>)
        (void)x.sadd_ov(y, wraps);
      else if constexpr (std::is_same_v<Op, arith::SubIOp>)
        (void)x.ssub_ov(y, wraps);
      else
        (void)x.smul_ov(y, wraps);
      if (wraps)
        return true;
    }
  return false;
}

namespace {
/// The position of a tile in the expression of a mask.
struct Standing {
  int64_t axis;     // of the tile, corresponding to the mask's
  AffineMap places; // positions of its elements, from those of the mask
  int effort;       // operations left to visit
  SmallVectorImpl<MayWrap> &unless;

  Standing below() const { return {axis, places, effort - 1, unless}; }
  Standing below(tile::MoveOp move, int64_t source) const {
    return {source, move.getMoveMap().compose(places), effort - 1, unless};
  }
};
} // namespace

/// The monotonicity of a signed integer tile along an axis.
static Trend trendOf(Value tile, const Standing &at) {
  Operation *op = tile.getDefiningOp();
  APInt constant; // the constant, or the splat value
  if (!isa<RankedTensorType>(tile.getType()) || matchPattern(tile, m_ConstantInt(&constant)))
    return steady;
  if (!op || at.effort == 0)
    return {};
  const auto of = [&](Value operand) { return trendOf(operand, at.below()); };
  const auto wraps = [](auto sum) { return canWrap<decltype(sum)>(rangeOf(sum.getLhs()), rangeOf(sum.getRhs())); };
  const auto sumOf = [&](auto sum, Trend left, Trend right) {
    const Trend trend = left.with(right);
    if (!wraps(sum))
      return trend;
    if (trend.rises == trend.falls || !(left.isSteady() || right.isSteady()))
      return Trend();
    at.unless.push_back({tile, at.places, trend.falls});
    return trend;
  };
  const Trend trend =
      llvm::TypeSwitch<Operation *, Trend>(op)
          .Case([](tile::IotaOp) { return Trend{true, false}; })
          .Case([&](tile::MoveOp move) {
            const std::optional<int64_t> below = sourceAxis(move, at.axis);
            return !below ? Trend() : *below < 0 ? steady : trendOf(move.getMoved(), at.below(move, *below));
          })
          .Case([&](arith::AddIOp sum) { return sumOf(sum, of(sum.getLhs()), of(sum.getRhs())); })
          .Case([&](arith::SubIOp sum) { return sumOf(sum, of(sum.getLhs()), of(sum.getRhs()).negated()); })
          .Case([&](arith::MulIOp product) {
            APInt factor;
            if (!matchPattern(product.getRhs(), m_ConstantInt(&factor)))
              return Trend();
            const Trend left = of(product.getLhs());
            return wraps(product) ? Trend() : factor.isNegative() ? left.negated() : left;
          })
          .Case([&](arith::ExtSIOp wider) { return of(wider.getIn()); })
          .Case<arith::MinSIOp, arith::MaxSIOp>([&](auto least) { return of(least.getLhs()).with(of(least.getRhs())); })
          .Default(Trend());
  if (trend.rises || trend.falls)
    return trend;
  return isElementwise(op) && llvm::all_of(op->getOperands(), [&](Value operand) { return of(operand).isSteady(); })
             ? steady
             : Trend();
}

static bool holdsInInterval(Value mask, const Standing &at) {
  if (at.effort == 0)
    return false;
  if (auto both = mask.getDefiningOp<arith::AndIOp>())
    return holdsInInterval(both.getLhs(), at.below()) && holdsInInterval(both.getRhs(), at.below());
  if (auto move = mask.getDefiningOp<tile::MoveOp>(); move && isa<RankedTensorType>(move.getMoved().getType())) {
    const std::optional<int64_t> below = sourceAxis(move, at.axis);
    return below && (*below < 0 || holdsInInterval(move.getMoved(), at.below(move, *below)));
  }
  SmallVector<MayWrap> none; // a constant tile stays constant if it wraps
  if (trendOf(mask, {at.axis, at.places, at.effort, none}).isSteady())
    return true;
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return false;
  using Predicate = arith::CmpIPredicate;
  const Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::ne)
    return false;
  const bool hasSign =
      llvm::is_contained({Predicate::eq, Predicate::slt, Predicate::sle, Predicate::sgt, Predicate::sge}, predicate);
  if (!hasSign && !(isNonNegative(rangeOf(compare.getLhs())) && isNonNegative(rangeOf(compare.getRhs()))))
    return false;
  const Trend difference = trendOf(compare.getLhs(), at).with(trendOf(compare.getRhs(), at).negated());
  return difference.rises || difference.falls;
}

bool holdsInInterval(Value mask, int64_t axis, SmallVectorImpl<MayWrap> &unless, int effort) {
  const auto rank = static_cast<unsigned>(cast<RankedTensorType>(mask.getType()).getRank());
  return holdsInInterval(mask, {axis, AffineMap::getMultiDimIdentityMap(rank, mask.getContext()), effort, unless});
}

// --- Triangles -------------------------------------------------------------------------------------------------------

// Finds triangles: masks of the form `column - row <= shift`, with both positions relative to the tile's corner, so
// that the difference does not wrap.

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

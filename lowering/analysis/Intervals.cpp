// Comparisons of tiles that are monotonic along an axis. Whether a sum wraps is seen from its first and last elements,
// if one operand is constant along the axis.

#include "lowering/analysis/Intervals.h"
#include "lowering/analysis/Ranges.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering {

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

} // namespace kiln::lowering

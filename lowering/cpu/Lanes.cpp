// See Lanes.h.

#include "lowering/cpu/Lanes.h"

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace kiln::lowering::cpu {

/// Normalises the residue to [0, modulus), if there is a modulus.
static Congruence reduced(int64_t modulus, int64_t residue) {
  return {modulus, modulus ? llvm::mod(residue, modulus) : residue};
}

static Congruence plus(Congruence a, Congruence b) {
  return reduced(std::gcd(a.modulus, b.modulus), a.residue + b.residue);
}

static Congruence times(Congruence a, int64_t factor) { return reduced(a.modulus * factor, a.residue * factor); }

/// Whether the remainder of division by `divisor` is known.
static bool knowsRemainder(Congruence a, int64_t divisor) { return a.modulus % divisor == 0; }

static Congruence remainder(Congruence a, int64_t divisor) {
  if (knowsRemainder(a, divisor))
    return {0, llvm::mod(a.residue, divisor)};
  return reduced(std::gcd(a.modulus, divisor), a.residue);
}

static Congruence quotient(Congruence a, int64_t divisor) {
  return knowsRemainder(a, divisor) ? Congruence{a.modulus / divisor, a.residue / divisor} : Congruence();
}

static Congruence congruenceOfSmall(Value value, int effort) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return {0, constant.getSExtValue()};
  if (effort == 0)
    return {};
  const auto of = [&](Value operand) { return congruenceOf(operand, effort - 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || loop.getInductionVar() != value)
      return {};
    const Congruence step = of(loop.getStep());
    return plus(of(loop.getLowerBound()), {std::gcd(step.modulus, step.residue), 0});
  }
  return llvm::TypeSwitch<Operation *, Congruence>(value.getDefiningOp())
      .Case([&](arith::AddIOp op) { return plus(of(op.getLhs()), of(op.getRhs())); })
      .Case<arith::MulIOp, arith::DivUIOp, arith::RemUIOp>([&](auto op) {
        const Congruence right = of(op.getRhs());
        if (right.modulus != 0 || right.residue <= 0)
          return Congruence();
        if (isa<arith::MulIOp>(op))
          return times(of(op.getLhs()), right.residue);
        return isa<arith::DivUIOp>(op) ? quotient(of(op.getLhs()), right.residue)
                                       : remainder(of(op.getLhs()), right.residue);
      })
      .Default(Congruence());
}

/// Larger numbers are not positions in a tile; they are treated as unknown, which avoids overflow.
static constexpr int64_t large = int64_t(1) << 31;

Congruence congruenceOf(Value value, int effort) {
  const Congruence found = congruenceOfSmall(value, effort);
  return std::max(std::abs(found.modulus), std::abs(found.residue)) < large ? found : Congruence();
}

/// Quotients or remainders of positions by a constant.
static std::optional<LanePositions> divided(const LanePositions &from, int64_t divisor, bool remainders) {
  const Congruence base = from.base;
  const auto [least, most] = std::minmax_element(from.steps.begin(), from.steps.end());
  LanePositions to{remainders ? remainder(base, divisor) : quotient(base, divisor), from.steps};
  if (knowsRemainder(base, divisor)) {
    const int64_t begin = base.residue % divisor;
    for (int64_t &step : to.steps)
      step = remainders ? llvm::mod(begin + step, divisor) - begin : llvm::divideFloorSigned(begin + step, divisor);
    return to;
  }
  // Between two multiples of a number that divides both the divisor and the modulus, the quotient is constant.
  const int64_t stretch = std::gcd(base.modulus, divisor), begin = llvm::mod(base.residue, stretch);
  if (begin + *least < 0 || begin + *most >= stretch)
    return std::nullopt;
  if (!remainders)
    to.steps.assign(to.steps.size(), 0);
  return to;
}

std::optional<LanePositions> mappedBy(AffineExpr map, ArrayRef<LanePositions> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(map))
    return dims[dim.getPosition()];
  const size_t lanes = dims.front().steps.size();
  if (auto constant = dyn_cast<AffineConstantExpr>(map))
    return LanePositions{{0, constant.getValue()}, llvm::SmallVector<int64_t, 16>(lanes, 0)};
  auto binary = dyn_cast<AffineBinaryOpExpr>(map);
  if (!binary)
    return std::nullopt;
  auto left = mappedBy(binary.getLHS(), dims);
  if (!left)
    return std::nullopt;
  if (map.getKind() == AffineExprKind::Add) {
    auto right = mappedBy(binary.getRHS(), dims);
    if (!right)
      return std::nullopt;
    left->base = plus(left->base, right->base);
    for (auto [step, more] : llvm::zip(left->steps, right->steps))
      step += more;
    return left;
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!constant || constant.getValue() <= 0)
    return std::nullopt;
  switch (map.getKind()) {
  case AffineExprKind::Mul:
    left->base = times(left->base, constant.getValue());
    for (int64_t &step : left->steps)
      step *= constant.getValue();
    return left;
  case AffineExprKind::FloorDiv:
    return divided(*left, constant.getValue(), /*remainders=*/false);
  case AffineExprKind::Mod:
    return divided(*left, constant.getValue(), /*remainders=*/true);
  default:
    return std::nullopt;
  }
}

// --- Vectors of a tile -----------------------------------------------------------------------------------------------

/// The dimension of `tile` along its readers' lanes: the last one, through transpositions.
static int64_t axisOfLanes(Value tile) {
  for (Operation *user : tile.getUsers())
    if (auto transpose = dyn_cast<tile::TransposeOp>(user))
      return transpose.getPermutation()[axisOfLanes(transpose.getResult())];
  return static_cast<int64_t>(tile::shapeOf(tile.getType()).size()) - 1;
}

bool keepsVectors(tile::MoveOp move, int64_t lanes) {
  auto shape = tile::shapeOf(move->getResult(0).getType());
  const int64_t along = axisOfLanes(move->getResult(0)), extent = shape[along];
  SmallVector<LanePositions> rest, whole;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
    const Congruence any = shape[axis] == 1 ? Congruence{0, 0} : Congruence{1, 0};
    const int64_t first = extent / lanes * lanes;
    whole.push_back({axis == along ? Congruence{lanes, 0} : any, SmallVector<int64_t, 16>(lanes, 0)});
    rest.push_back({axis == along ? Congruence{0, first} : any, SmallVector<int64_t, 16>(extent % lanes, 0)});
  }
  std::iota(whole[along].steps.begin(), whole[along].steps.end(), 0);
  std::iota(rest[along].steps.begin(), rest[along].steps.end(), 0);
  return llvm::all_of(move.getMoveMap().getResults(), [&](AffineExpr expr) {
    return (extent < lanes || mappedBy(expr, whole)) && (extent % lanes == 0 || mappedBy(expr, rest));
  });
}

std::optional<AffineMap> placesOfMerged(tile::StoreOp store, int64_t lanes) {
  auto reshape = store.getValue().getDefiningOp<tile::ReshapeOp>();
  if (!reshape || !reshape->hasOneUse() || reshape->getBlock() != store->getBlock() ||
      !isa<RankedTensorType>(reshape.getSource().getType()) ||
      differsByUnits(reshape.getSource().getType(), reshape.getType()))
    return std::nullopt;
  auto from = tile::shapeOf(reshape.getSource().getType()), to = tile::shapeOf(reshape.getType());
  if (from.empty() || to.empty() || from.back() < lanes || to.back() % from.back() != 0)
    return std::nullopt;
  MLIRContext *context = store.getContext();
  AffineExpr row = getAffineConstantExpr(0, context); // row of the source
  for (auto [axis, extent] : llvm::enumerate(from.drop_back()))
    row = row * extent + getAffineDimExpr(axis, context);
  const int64_t inRow = to.back() / from.back();
  SmallVector<AffineExpr> places = {row % inRow * from.back() + getAffineDimExpr(from.size() - 1, context)};
  row = row.floorDiv(inRow);
  for (int64_t axis = static_cast<int64_t>(to.size()) - 2; axis >= 0; --axis) {
    places.push_back(axis == 0 ? row : row % to[axis]);
    row = row.floorDiv(to[axis]);
  }
  std::reverse(places.begin(), places.end());
  return AffineMap::get(from.size(), 0, places, context);
}

} // namespace kiln::lowering::cpu

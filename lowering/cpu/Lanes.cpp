// See Lanes.h.

#include "lowering/cpu/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace kiln::lowering::cpu {

/// With the residue between 0 and the modulus, where there is one.
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

/// Numbers beyond this one are no positions in a tile: nothing is said of them, so that nothing overflows.
static constexpr int64_t large = int64_t(1) << 31;

Congruence congruenceOf(Value value, int effort) {
  const Congruence found = congruenceOfSmall(value, effort);
  return std::max(std::abs(found.modulus), std::abs(found.residue)) < large ? found : Congruence();
}

/// Positions divided by a constant: the quotients, or the remainders.
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
  // Between two multiples of what divides the modulus as well, the quotient stays.
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

} // namespace kiln::lowering::cpu

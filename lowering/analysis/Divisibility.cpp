// Power-of-two divisors of scalars, from their defining operations and from assumptions.

#include "lowering/analysis/Divisibility.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/analysis/Assumptions.h"
#include "lowering/analysis/LoopCarried.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering {

static constexpr unsigned maxBits = 30;

static unsigned zeroBits(Value value, int effort);

/// The number of the lowest bits of `value`, no constant, that its definition makes zero.
static unsigned definedZeroBits(Value value, int effort) {
  const auto of = [&](Value operand) { return zeroBits(operand, effort - 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *const parent = argument.getOwner()->getParentOp();
    auto forOp = dyn_cast_or_null<scf::ForOp>(parent);
    if (forOp && forOp.getInductionVar() == value)
      return std::min(of(forOp.getLowerBound()), of(forOp.getStep()));
    const std::optional<LoopCarried> loop = parent ? LoopCarried::of(parent) : std::nullopt;
    const auto *const carried = loop ? llvm::find(loop->arguments, argument) : nullptr;
    if (!loop || carried == loop->arguments.end())
      return 0;
    const size_t number = carried - loop->arguments.begin(); // a number that grows by others in a loop
    auto next = loop->yielded[number].get().getDefiningOp<arith::AddIOp>();
    return next && next.getLhs() == value ? std::min(of(loop->inits[number].get()), of(next.getRhs())) : 0;
  }
  return llvm::TypeSwitch<Operation *, unsigned>(value.getDefiningOp())
      .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(
          [&](auto op) { return std::min(of(op.getLhs()), of(op.getRhs())); })
      .Case([&](arith::MulIOp op) { return std::min(maxBits, of(op.getLhs()) + of(op.getRhs())); })
      .Case([&](arith::SelectOp op) { return std::min(of(op.getTrueValue()), of(op.getFalseValue())); })
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>([&](auto op) { return of(op.getIn()); })
      .Default(0u);
}

/// The number of the lowest bits of `value` that are known to be zero.
static unsigned zeroBits(Value value, int effort) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isZero() ? maxBits : std::min(maxBits, constant.countr_zero());
  if (effort == 0)
    return 0;
  return std::min(maxBits, std::max(definedZeroBits(value, effort), assumedZeroBits(value)));
}

int64_t divisorOf(Value value, int effort) { return int64_t{1} << zeroBits(value, effort); }

} // namespace kiln::lowering

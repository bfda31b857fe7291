// Ranges and divisors of scalars, and ranges of tiles' elements. Assumptions are comparisons with constants, and
// remainders that are 0.

#include "lowering/analysis/Integers.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/analysis/LoopCarried.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/ConstantRange.h"

using namespace mlir;

namespace kiln::lowering {

// --- Assumptions -----------------------------------------------------------------------------------------------------

/// Whether an assumption in `block` says that `condition`, alone or with others, is true.
static bool isAssumed(Value condition, Block *block) {
  return llvm::any_of(condition.getUsers(), [&](Operation *user) {
    if (isa<tile::AssumeOp>(user))
      return user->getBlock() == block;
    return isa<arith::AndIOp>(user) && user->getResult(0).getType().isInteger(1) &&
           isAssumed(user->getResult(0), block);
  });
}

/// Whether an assumption in `block` says that `value` is 0.
static bool isAssumedZero(Value value, Block *block) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto compare = dyn_cast<arith::CmpIOp>(user);
    return compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
           matchPattern(compare.getLhs() == value ? compare.getRhs() : compare.getLhs(), m_Zero()) &&
           isAssumed(compare.getResult(), block);
  });
}

unsigned assumedZeroBits(Value value) {
  unsigned bits = 0;
  for (Operation *user : value.getUsers()) {
    APInt number;
    if (user->getNumOperands() != 2 || user->getOperand(0) != value ||
        !matchPattern(user->getOperand(1), m_ConstantInt(&number)))
      continue;
    const unsigned zeros = isa<arith::RemSIOp, arith::RemUIOp, tile::RemOp>(user) ? number.countr_zero()
                           : isa<arith::AndIOp>(user)                             ? number.countr_one()
                                                                                  : 0;
    if (zeros > bits && !number.isZero() && isAssumedZero(user->getResult(0), value.getParentBlock()))
      bits = zeros;
  }
  return bits;
}

/// LLVM's name of a predicate.
static llvm::CmpInst::Predicate predicateOf(arith::CmpIPredicate predicate) {
  using llvm::CmpInst;
  static constexpr CmpInst::Predicate names[] = {
      CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_SLT, CmpInst::ICMP_SLE, CmpInst::ICMP_SGT,
      CmpInst::ICMP_SGE, CmpInst::ICMP_ULT, CmpInst::ICMP_ULE, CmpInst::ICMP_UGT, CmpInst::ICMP_UGE};
  static_assert(std::size(names) == arith::getMaxEnumValForCmpIPredicate() + 1);
  return names[static_cast<size_t>(predicate)];
}

/// The values for which a comparison of `value` with a constant is true; nothing for other operations.
static std::optional<llvm::ConstantRange> valuesWhere(Operation *op, Value value) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  APInt number;
  if (!compare)
    return {};
  const llvm::CmpInst::Predicate predicate = predicateOf(compare.getPredicate());
  if (compare.getLhs() == value && matchPattern(compare.getRhs(), m_ConstantInt(&number)))
    return llvm::ConstantRange::makeExactICmpRegion(predicate, number);
  if (compare.getRhs() == value && matchPattern(compare.getLhs(), m_ConstantInt(&number)))
    return llvm::ConstantRange::makeExactICmpRegion(llvm::CmpInst::getSwappedPredicate(predicate), number);
  return {};
}

ConstantIntRanges assumedRange(Value value, const ConstantIntRanges &known) {
  ConstantIntRanges range = known;
  for (Operation *user : value.getUsers()) {
    const std::optional<llvm::ConstantRange> values = valuesWhere(user, value);
    if (!values || values->isEmptySet() || !isAssumed(user->getResult(0), value.getParentBlock()))
      continue;
    range = range.intersection(
        {values->getUnsignedMin(), values->getUnsignedMax(), values->getSignedMin(), values->getSignedMax()});
  }
  const bool isEmpty = range.smin().sgt(range.smax()) || range.umin().ugt(range.umax());
  return isEmpty ? known : range;
}

// --- Ranges ----------------------------------------------------------------------------------------------------------

/// The range of an induction variable: from the lowest begin to below the highest end.
static ConstantIntRanges rangeOfInduction(scf::ForOp loop, int effort) {
  const ConstantIntRanges begin = rangeOf(loop.getLowerBound(), effort), end = rangeOf(loop.getUpperBound(), effort);
  if (loop.getUnsignedCmp() || begin.smin().sge(end.smax()))
    return ConstantIntRanges::maxRange(begin.smin().getBitWidth());
  return ConstantIntRanges::fromSigned(begin.smin(), end.smax() - 1);
}

/// The range of `value`, no constant, by its definition.
static ConstantIntRanges definedRange(Value value, int effort) {
  const ConstantIntRanges anything =
      ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(value.getType()));
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && loop.getInductionVar() == value ? rangeOfInduction(loop, effort - 1) : anything;
  }
  if (auto move = value.getDefiningOp<tile::MoveOp>())
    return rangeOf(move.getMoved(), effort - 1);
  if (auto iota = value.getDefiningOp<tile::IotaOp>()) {
    const unsigned bits = iota.getType().getElementTypeBitWidth();
    return ConstantIntRanges::fromSigned(APInt(bits, 0), APInt(bits, iota.getType().getDimSize(0) - 1));
  }
  auto op = value.getDefiningOp<InferIntRangeInterface>();
  if (!op)
    return anything;
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op->getOperands()) {
    const bool isInteger = getElementTypeOrSelf(operand.getType()).isIntOrIndex();
    operands.push_back(isInteger ? rangeOf(operand, effort - 1) : ConstantIntRanges::maxRange(1)); // not used
  }
  ConstantIntRanges found = anything;
  op.inferResultRanges(operands, [&](Value result, const ConstantIntRanges &range) {
    if (result == value)
      found = range;
  });
  return found;
}

ConstantIntRanges rangeOf(Value value, int effort) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return ConstantIntRanges::constant(constant);
  if (effort == 0)
    return ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(value.getType()));
  const ConstantIntRanges defined = definedRange(value, effort);
  return value.getType().isInteger() ? assumedRange(value, defined) : defined;
}

// --- Divisors --------------------------------------------------------------------------------------------------------

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

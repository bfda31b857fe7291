// Facts about scalars from assumptions: comparisons with constants, and remainders that are 0.

#include "lowering/analysis/Assumptions.h"

#include "dialect/tile/TileDialect.h"

#include "mlir/IR/Matchers.h"
#include "llvm/IR/ConstantRange.h"

using namespace mlir;

namespace kiln::lowering {

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

} // namespace kiln::lowering

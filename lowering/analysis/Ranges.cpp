// Ranges of scalars and of tiles' elements, from their defining operations and from assumptions; of induction
// variables, from the bounds.

#include "lowering/analysis/Ranges.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/analysis/Assumptions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering {

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

} // namespace kiln::lowering

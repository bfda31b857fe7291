// Integer ranges of operations' results, for MLIR's range analysis.

#include "dialect/tile/Limits.h"
#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/IR/ConstantRange.h"

using namespace mlir;

namespace kiln::tile {

/// 0 … 2^bits of an i64.
static ConstantIntRanges upTo(int bits) {
  return ConstantIntRanges::fromUnsigned(APInt(64, 0), APInt::getOneBitSet(64, bits));
}

void DimOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  const auto argument = dyn_cast<BlockArgument>(getView());
  auto function = argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  const bool isSmall = function && function.getArgAttr(argument.getArgNumber(), "tile.fits_32");
  set(getResult(), upTo(isSmall ? abi::smallExtentBits : abi::extentBits));
}

void ProgramIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), upTo(abi::gridBits));
}

void NumProgramsOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), upTo(abi::gridBits));
}

/// The values of a signed range, and back.
static llvm::ConstantRange valuesOf(const ConstantIntRanges &range) {
  return llvm::ConstantRange::getNonEmpty(range.smin(), range.smax() + 1);
}
static ConstantIntRanges rangeOf(const llvm::ConstantRange &values) {
  return ConstantIntRanges::fromSigned(values.getSignedMin(), values.getSignedMax());
}

/// Between integers; a bool is 0 or 1.
void CastOp::inferResultRanges(ArrayRef<ConstantIntRanges> sources, SetIntRangeFn set) {
  Type from = getElementTypeOrSelf(getSource().getType()), to = getElementTypeOrSelf(getType());
  if (!isa<IntegerType>(to))
    return;
  unsigned width = to.getIntOrFloatBitWidth();
  if (!isa<IntegerType>(from) || width == 1)
    return set(getResult(), ConstantIntRanges::maxRange(width));
  if (from.isInteger(1))
    return set(getResult(), ConstantIntRanges::fromUnsigned(APInt(width, 0), APInt(width, 1)));
  if (isUnsigned(*this) && width > from.getIntOrFloatBitWidth())
    return set(getResult(),
               ConstantIntRanges::fromUnsigned(sources[0].umin().zext(width), sources[0].umax().zext(width)));
  set(getResult(), rangeOf(valuesOf(sources[0]).sextOrTrunc(width)));
}

/// Sets the full range for an unsigned operation; returns whether it is one.
static bool isUnknown(Operation *op, SetIntRangeFn set) {
  const unsigned width = getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth();
  if (isUnsigned(op))
    set(op->getResult(0), ConstantIntRanges::maxRange(width));
  return isUnsigned(op);
}

/// The quotients, and 0, because x / 0 is 0.
void DivOp::inferResultRanges(ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) {
  if (isUnknown(*this, set))
    return;
  llvm::ConstantRange quotient = valuesOf(operands[0]).sdiv(valuesOf(operands[1]));
  set(getResult(), rangeOf(quotient.unionWith(APInt(quotient.getBitWidth(), 0))));
}

/// The remainders, and x itself, because x rem 0 is x.
void RemOp::inferResultRanges(ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) {
  if (isUnknown(*this, set))
    return;
  llvm::ConstantRange dividend = valuesOf(operands[0]);
  set(getResult(), rangeOf(dividend.srem(valuesOf(operands[1])).unionWith(dividend)));
}

} // namespace kiln::tile

// Ranges by the arithmetic of llvm::ConstantRange, which keeps to the values that a wrapped result may have.

#include "lowering/analysis/Ranges.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using llvm::ConstantRange;

namespace kiln::lowering {

/// 0 … 2^bits.
static ConstantRange upTo(int bits) { return {APInt(64, 0), APInt::getOneBitSet(64, bits) + 1}; }

/// What a loop counts with: from its lowest beginning to below its highest end.
static ConstantRange rangeOfInduction(scf::ForOp loop, int effort) {
  const ConstantRange begin = rangeOf(loop.getLowerBound(), effort), end = rangeOf(loop.getUpperBound(), effort);
  if (loop.getUnsignedCmp() || begin.getSignedMin().sge(end.getSignedMax()))
    return ConstantRange::getFull(begin.getBitWidth());
  return {begin.getSignedMin(), end.getSignedMax()};
}

/// `tile.cast` between integers; a bool is 0 or 1.
static ConstantRange rangeOfCast(Value source, unsigned width, int effort) {
  if (!source.getType().isInteger())
    return ConstantRange::getFull(width);
  const ConstantRange range = rangeOf(source, effort);
  return source.getType().isInteger(1) ? range.zextOrTrunc(width) : range.sextOrTrunc(width);
}

/// Whether the operation is known not to wrap.
template <class OpTy> static bool isExact(OpTy op) {
  return arith::bitEnumContainsAll(op.getOverflowFlags(), arith::IntegerOverflowFlags::nsw);
}

ConstantRange rangeOf(Value value, int effort) {
  const unsigned width = value.getType().isIndex() ? 64 : value.getType().getIntOrFloatBitWidth();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant;
  const ConstantRange anything = ConstantRange::getFull(width);
  if (effort == 0)
    return anything;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && loop.getInductionVar() == value ? rangeOfInduction(loop, effort - 1) : anything;
  }
  Operation *op = value.getDefiningOp();
  const auto operand = [&](unsigned i) { return rangeOf(op->getOperand(i), effort - 1); };
  return llvm::TypeSwitch<Operation *, ConstantRange>(op)
      .Case([](tile::DimOp) { return upTo(abi::extentBits); })
      .Case<tile::ProgramIdOp, tile::NumProgramsOp>([](auto) { return upTo(abi::gridBits); })
      .Case([&](arith::AddIOp add) {
        return isExact(add) ? operand(0).sadd_sat(operand(1)) : operand(0).add(operand(1));
      })
      .Case([&](arith::MulIOp multiply) {
        return isExact(multiply) ? operand(0).smul_sat(operand(1)) : operand(0).multiply(operand(1));
      })
      .Case([&](arith::SubIOp) { return operand(0).sub(operand(1)); })
      .Case([&](arith::MinSIOp) { return operand(0).smin(operand(1)); })
      .Case([&](arith::MaxSIOp) { return operand(0).smax(operand(1)); })
      .Case([&](arith::SelectOp) { return operand(1).unionWith(operand(2)); })
      // x / 0 is 0; x rem 0 is x.
      .Case<tile::DivOp, arith::DivSIOp>([&](auto) { return operand(0).sdiv(operand(1)).unionWith(APInt(width, 0)); })
      .Case<tile::RemOp, arith::RemSIOp>([&](auto) { return operand(0).srem(operand(1)).unionWith(operand(0)); })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) { return operand(0).sextOrTrunc(width); })
      .Case([&](arith::ExtUIOp) { return operand(0).zextOrTrunc(width); })
      .Case([&](tile::CastOp cast) { return rangeOfCast(cast.getSource(), width, effort - 1); })
      .Default([&](Operation *) { return anything; });
}

} // namespace kiln::lowering

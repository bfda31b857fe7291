// Changes induction variables to 32 bits if a loop's bounds fit. The counter and the values derived from it then take
// one register and one instruction instead of two.

#include "lowering/Passes.h"

#include "dialect/tile/Limits.h"
#include "lowering/analysis/Integers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_NARROWLOOPS
#include "lowering/gpu/Passes.h.inc"

/// The largest step, so that a few steps past the end fit, too.
static constexpr int64_t maxStep = 1 << 24;

/// A loop that begins past its end has no iterations, so only the end must be small.
static bool isNarrow(scf::ForOp loop) {
  APInt step;
  const ConstantIntRanges end = rangeOf(loop.getUpperBound());
  return loop.getInductionVar().getType().isInteger(64) && !loop.getUnsignedCmp() &&
         matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isStrictlyPositive() && step.sle(maxStep) &&
         isNonNegative(rangeOf(loop.getLowerBound())) && isNonNegative(end) &&
         end.smax().sle(int64_t{1} << abi::smallExtentBits);
}

static void narrow(scf::ForOp loop) {
  OpBuilder builder(loop);
  const Location loc = loop.getLoc();
  const Type narrowType = builder.getI32Type();
  // The minimum makes the ranges known to LLVM and other analyses: bounds are nonnegative, and the counter does not
  // wrap.
  const auto cut = [&](Value bound) -> Value {
    APInt known;
    if (matchPattern(bound, m_ConstantInt(&known)) && known.sle(int64_t{1} << abi::smallExtentBits))
      return arith::ConstantIntOp::create(builder, loc, known.getSExtValue(), 32);
    const Value most = arith::ConstantIntOp::create(builder, loc, int64_t{1} << abi::smallExtentBits, 64);
    return arith::TruncIOp::create(builder, loc, narrowType, arith::MinUIOp::create(builder, loc, bound, most));
  };
  loop.setLowerBound(cut(loop.getLowerBound()));
  loop.setUpperBound(cut(loop.getUpperBound()));
  loop.setStep(cut(loop.getStep()));
  Value counter = loop.getInductionVar();
  const Type wideType = counter.getType();
  counter.setType(narrowType);
  builder.setInsertionPointToStart(loop.getBody());
  auto wide = arith::ExtSIOp::create(builder, loc, wideType, counter);
  counter.replaceAllUsesExcept(wide, wide);
}

namespace {
struct NarrowLoops : impl::NarrowLoopsBase<NarrowLoops> {
  void runOnOperation() override {
    if (getOperation()->hasAttr("tile.kernel"))
      getOperation().walk([](scf::ForOp loop) {
        if (isNarrow(loop))
          narrow(loop);
      });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// Changes loops whose counter might overflow. A loop counts from `begin` by `step`. If that exceeds the largest integer
// before it reaches `end`, the counter wraps, and the loop never ends.
//
// Loops whose bounds are known to be far from the limits of their type are unchanged. These are nearly all loops: those
// over extents, parts of extents and constants. Any other loop is changed to count its iterations.
//
//     scf.for %i = %begin to %end step %step : i64 { … }
//     // becomes
//     %more = arith.cmpi slt, %begin, %end : i64
//     %count = (%end - %begin - 1) / %step + 1 if %more, else 0     // all unsigned: exact for any i64
//     scf.for %n = %c0 to %count step %c1 : i64 { %i = %begin + %n * %step … }

#include "lowering/Passes.h"
#include "lowering/analysis/Integers.h"
#include "lowering/tile/Emit.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_COUNTLOOPS
#include "lowering/Passes.h.inc"

/// Whether no sum or difference of two values of these ranges wraps.
static bool areSmall(ArrayRef<ConstantIntRanges> ranges) {
  return llvm::all_of(ranges, [](const ConstantIntRanges &range) {
    return range.smin().getNumSignBits() > 2 && range.smax().getNumSignBits() > 2;
  });
}

/// Whether the sum of several steps, as in an unrolled loop, also stays within the limits.
static bool isShort(Value step) {
  APInt constant;
  return matchPattern(step, m_ConstantInt(&constant)) && constant.getSignificantBits() <= 32;
}

/// The loop's number of iterations, saturated at the largest integer of its type.
static Value countOf(Emit &emit, scf::ForOp loop, Value step) {
  const Type type = step.getType();
  Value one = emit.integer(type, 1);
  Value more = emit.compare(arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
  Value span = emit.make<arith::SubIOp>(emit.make<arith::SubIOp>(loop.getUpperBound(), loop.getLowerBound()), one);
  Value count = emit.make<arith::AddIOp>(emit.make<arith::DivUIOp>(span, step), one);
  Value most = emit.integer(type, APInt::getSignedMaxValue(type.getIntOrFloatBitWidth()).getSExtValue());
  return emit.select(more, emit.make<arith::MinUIOp>(count, most), emit.integer(type, 0));
}

static void countIterations(scf::ForOp loop, bool stepIsPositive) {
  OpBuilder builder(loop);
  Emit emit(builder, loop.getLoc());
  Value begin = loop.getLowerBound(), step = loop.getStep(), number = loop.getInductionVar();
  const Type type = step.getType();
  if (!stepIsPositive)
    step = emit.make<arith::MaxSIOp>(step, emit.integer(type, 1));
  loop.setUpperBound(countOf(emit, loop, step));
  loop.setLowerBound(emit.integer(type, 0));
  loop.setStep(emit.integer(type, 1));
  builder.setInsertionPointToStart(loop.getBody());
  // From a negative begin the distance may need one more bit; the sum, which wraps too, is exact.
  const auto flags =
      isNonNegative(rangeOf(begin)) ? arith::IntegerOverflowFlags::nsw : arith::IntegerOverflowFlags::none;
  Value distance = emit.make<arith::MulIOp>(number, step, flags);
  number.replaceAllUsesExcept(emit.make<arith::AddIOp>(begin, distance, flags), distance.getDefiningOp());
}

/// Folds `users` and, transitively, the users of folded values.
static void foldUsers(SmallVector<Operation *> users) {
  llvm::SetVector<Operation *> unused;
  while (!users.empty()) {
    Operation *const user = users.pop_back_val();
    SmallVector<OpFoldResult, 1> folded;
    if (failed(user->fold(folded)) || folded.size() != 1 || !isa<Value>(folded[0]))
      continue;
    llvm::append_range(users, user->getUsers());
    user->getResult(0).replaceAllUsesWith(cast<Value>(folded[0]));
    unused.insert(user);
  }
  for (Operation *const op : unused)
    op->erase();
}

/// A range with a step of unknown sign counts up or down by the sign of the step, a shift right by 63. Replaces the
/// shift by 0 if the step is known not to be negative.
static void settleSigns(func::FuncOp function) {
  SmallVector<arith::ShRSIOp> signs;
  function.walk([&](arith::ShRSIOp op) {
    APInt amount;
    if (op.getType().isInteger(64) && matchPattern(op.getRhs(), m_ConstantInt(&amount)) && amount == 63 &&
        isNonNegative(rangeOf(op.getLhs())))
      signs.push_back(op);
  });
  for (arith::ShRSIOp op : signs) {
    OpBuilder builder(op);
    SmallVector<Operation *> users(op->getUsers());
    op.replaceAllUsesWith(Emit(builder, op.getLoc()).integer(op.getType(), 0));
    op.erase();
    foldUsers(std::move(users));
  }
}

namespace {
struct CountLoops : impl::CountLoopsBase<CountLoops> {
  using CountLoopsBase::CountLoopsBase;
  void runOnOperation() override {
    settleSigns(getOperation());
    getOperation().walk([](scf::ForOp loop) {
      if (loop.getUnsignedCmp() || loop.getStep().getType().isIndex()) // of a part that is already lowered
        return;
      const ConstantIntRanges step = rangeOf(loop.getStep());
      const bool stepIsPositive = step.smin().isStrictlyPositive();
      if (!stepIsPositive || !areSmall({rangeOf(loop.getLowerBound()), rangeOf(loop.getUpperBound()), step}) ||
          (loop->hasAttr("tile.unroll") && !isShort(loop.getStep())))
        countIterations(loop, stepIsPositive);
    });
  }
};
} // namespace

} // namespace kiln::lowering

// Unrolls loops that request it (`tile.unroll`); a second loop executes the remaining iterations.
//
//     scf.for %i = %begin to %end step %s { … } {tile.unroll = 2}
//     // becomes
//     scf.for %i = %begin to %end - %s step 2 %s { …%i… …%i + %s… }
//     scf.for %i = %rest to %end step %s { … }

#include "lowering/Diagnostics.h"
#include "lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_UNROLLLOOPS
#include "lowering/Passes.h.inc"

namespace {

/// Creates scalars before a loop, folded if they are constant.
struct Scalars {
  OpBuilder builder;
  Location loc;
  Type type;

  Value number(int64_t value) { return arith::ConstantIntOp::create(builder, loc, type, value); }
  template <class OpTy, class... Args> Value make(Args &&...args) {
    return builder.createOrFold<OpTy>(loc, std::forward<Args>(args)...);
  }
};

} // namespace

/// Clones the loop's body `times` times into the body of `unrolled`.
static void repeatBody(scf::ForOp loop, scf::ForOp unrolled, int64_t times) {
  Block *const body = unrolled.getBody();
  if (body->mightHaveTerminator() && !body->empty())
    body->getTerminator()->erase(); // exists if nothing is carried
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  const Location loc = loop.getLoc();
  SmallVector<Value> carried(unrolled.getRegionIterArgs());
  for (int64_t time = 0; time < times; ++time) {
    Value position = unrolled.getInductionVar();
    if (time > 0) {
      const Value ahead = builder.createOrFold<arith::MulIOp>(
          loc, loop.getStep(), arith::ConstantIntOp::create(builder, loc, position.getType(), time));
      position = arith::AddIOp::create(builder, loc, position, ahead);
    }
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), position);
    mapping.map(loop.getRegionIterArgs(), carried);
    for (Operation &op : loop.getBody()->without_terminator())
      builder.clone(op, mapping);
    carried = llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  scf::YieldOp::create(builder, loc, carried);
}

/// The bounds are far from the limits of their type, and the step is small (tile-count-loops).
static void unroll(scf::ForOp loop, int64_t times) {
  Scalars scalars{OpBuilder(loop), loop.getLoc(), loop.getStep().getType()};
  const Value begin = loop.getLowerBound(), end = loop.getUpperBound(), step = loop.getStep();
  const Value stride = scalars.make<arith::MulIOp>(step, scalars.number(times));
  const Value last = scalars.make<arith::SubIOp>(end, scalars.make<arith::SubIOp>(stride, step));
  const Value isAny = scalars.make<arith::CmpIOp>(arith::CmpIPredicate::slt, begin, last);
  const Value most = scalars.make<arith::SubIOp>(scalars.make<arith::AddIOp>(last, stride), scalars.number(1));
  const Value count = scalars.make<arith::DivUIOp>(scalars.make<arith::SubIOp>(most, begin), stride);
  const Value covered = scalars.make<arith::MulIOp>(count, stride);
  const Value rest =
      scalars.make<arith::AddIOp>(begin, scalars.make<arith::SelectOp>(isAny, covered, scalars.number(0)));

  auto unrolled = scf::ForOp::create(scalars.builder, loop.getLoc(), begin, last, stride, loop.getInitArgs());
  repeatBody(loop, unrolled, times);
  loop->removeAttr("tile.unroll");
  unrolled->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  APInt from, to;
  if (matchPattern(rest, m_ConstantInt(&from)) && matchPattern(end, m_ConstantInt(&to)) && from.sge(to)) {
    loop.replaceAllUsesWith(unrolled.getResults());
    loop.erase();
    return;
  }
  loop.setLowerBound(rest);
  loop.getInitArgsMutable().assign(unrolled.getResults());
}

namespace {
struct UnrollLoops : impl::UnrollLoopsBase<UnrollLoops> {
  using UnrollLoopsBase::UnrollLoopsBase;

  void runOnOperation() override {
    const WalkResult walk = getOperation().walk([&](scf::ForOp loop) -> WalkResult { // inner loops first
      const auto times = loop->getAttrOfType<IntegerAttr>("tile.unroll");
      if (!times)
        return WalkResult::advance();
      int64_t count = 0;
      loop.getBody()->walk([&](Operation *) { ++count; });
      if (count * times.getInt() > operations)
        return emitUserError(loop) << "expected at most " << operations.getValue().value << " operations, but "
                                   << times.getInt() << " unrolled iterations of " << count
                                   << " operations exceed that; choose a smaller 'unroll'";
      if (times.getInt() > 1)
        unroll(loop, times.getInt());
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

} // namespace kiln::lowering

// Reads and changes the carried values of scf.for and scf.while.

#include "lowering/analysis/LoopCarried.h"

using namespace mlir;

namespace kiln::lowering {

/// Whether the while's first region only tests the first carried value and passes on the others.
static bool isRotated(scf::WhileOp loop) {
  Block *const test = loop.getBeforeBody();
  scf::ConditionOp condition = loop.getConditionOp();
  return &test->front() == condition && test->getNumArguments() > 0 &&
         condition.getCondition() == test->getArgument(0) &&
         llvm::equal(condition.getArgs(), ValueRange(test->getArguments().drop_front()));
}

static MutableArrayRef<OpOperand> yieldedIn(Block &body, unsigned others) {
  if (!body.mightHaveTerminator())
    return {};
  return body.getTerminator()->getOpOperands().drop_front(others);
}

std::optional<LoopCarried> LoopCarried::of(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return LoopCarried{op,
                       loop.getBody(),
                       op->getOpOperands().drop_front(loop.getNumControlOperands()),
                       loop.getRegionIterArgs(),
                       op->getResults(),
                       yieldedIn(*loop.getBody(), 0)};
  auto loop = dyn_cast<scf::WhileOp>(op);
  if (!loop || !isRotated(loop))
    return std::nullopt;
  Block *const body = loop.getAfterBody();
  return LoopCarried{
      op, body, op->getOpOperands().drop_front(1), body->getArguments(), op->getResults(), yieldedIn(*body, 1)};
}

scf::WhileOp emptyWhile(OpBuilder &builder, Location loc, ValueRange inits) {
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::WhileOp::create(builder, loc, inits.drop_front().getTypes(), inits);
  const SmallVector<Location> locations(inits.size(), loc);
  Block *const test = builder.createBlock(&loop.getBefore(), {}, inits.getTypes(), locations);
  scf::ConditionOp::create(builder, loc, test->getArgument(0), test->getArguments().drop_front());
  builder.createBlock(&loop.getAfter(), {}, inits.drop_front().getTypes(), ArrayRef(locations).drop_front());
  return loop;
}

LoopCarried LoopCarried::withCarried(OpBuilder &builder, ValueRange carried) const {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Operation *made = nullptr;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto fresh = scf::ForOp::create(builder, op->getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                                    carried, {}, loop.getUnsignedCmp());
    if (!fresh.getBody()->empty())
      fresh.getBody()->back().erase(); // the yield of a loop without results
    loop.getInductionVar().replaceAllUsesWith(fresh.getInductionVar());
    fresh.getBody()->getOperations().splice(fresh.getBody()->end(), body->getOperations());
    made = fresh;
  } else {
    SmallVector<Value> inits = {op->getOperand(0)};
    llvm::append_range(inits, carried);
    scf::WhileOp fresh = emptyWhile(builder, op->getLoc(), inits);
    fresh.getAfterBody()->getOperations().splice(fresh.getAfterBody()->end(), body->getOperations());
    cast<scf::WhileOp>(op).getBeforeBody()->clear();
    made = fresh;
  }
  return *of(made);
}

} // namespace kiln::lowering

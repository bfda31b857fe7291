// Rotates while loops: the condition is computed before the loop, and again at the end of each iteration. The first
// region then only has an `scf.condition` of the first carried value, which passes on the others. Unused carried values
// keep their initial values.
//
//     scf.while (%x = %init) { %c = …%x… scf.condition(%c) %x } do { … scf.yield %y }
//     // becomes
//     %c0 = …%init…
//     scf.while (%c = %c0, %x = %init) { scf.condition(%c) %x } do { … %c1 = …%y… scf.yield %c1, %y }

#include "lowering/Passes.h"
#include "lowering/analysis/LoopCarried.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_ROTATELOOPS
#include "lowering/Passes.h.inc"

static void rotate(scf::WhileOp loop) {
  OpBuilder builder(loop);
  Block *const test = loop.getBeforeBody();
  scf::ConditionOp condition = loop.getConditionOp();
  IRMapping first;
  first.map(test->getArguments(), loop.getInits());
  for (Operation &op : test->without_terminator())
    builder.clone(op, first);
  SmallVector<Value> inits = {first.lookupOrDefault(condition.getCondition())};
  for (Value value : condition.getArgs())
    inits.push_back(first.lookupOrDefault(value));
  scf::WhileOp rotated = emptyWhile(builder, loop.getLoc(), inits);
  rotated->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  rotated.getAfter().takeBody(loop.getAfter());

  scf::YieldOp yield = rotated.getYieldOp();
  for (auto [argument, value] : llvm::zip_equal(test->getArguments(), yield.getOperands()))
    argument.replaceAllUsesWith(value);
  SmallVector<Value> again = {condition.getCondition()};
  llvm::append_range(again, condition.getArgs());
  yield->getBlock()->getOperations().splice(Block::iterator(yield), test->getOperations(), test->begin(),
                                            Block::iterator(condition));
  yield->setOperands(again);
  loop.replaceAllUsesWith(rotated.getResults());
  loop.erase();
}

/// Stops updating carried numbers that only their own update uses, such as an unused iteration count.
static void stopIdle(const LoopCarried &loop) {
  for (const auto &[argument, next, result] : llvm::zip_equal(loop.arguments, loop.yielded, loop.results)) {
    Operation *const op = next.get().getDefiningOp();
    if (!op || op->getNumRegions() > 0 || !isPure(op) || !op->hasOneUse() || !result.use_empty() ||
        !llvm::all_of(argument.getUsers(), [&](Operation *user) { return user == op; }))
      continue;
    next.set(argument);
    op->erase();
  }
}

namespace {
struct RotateLoops : impl::RotateLoopsBase<RotateLoops> {
  using RotateLoopsBase::RotateLoopsBase;
  void runOnOperation() override {
    getOperation().walk([](scf::WhileOp loop) { // inner loops first
      if (!LoopCarried::of(loop))
        rotate(loop);
    });
    getOperation().walk([](scf::WhileOp loop) { stopIdle(*LoopCarried::of(loop)); });
  }
};
} // namespace

} // namespace kiln::lowering

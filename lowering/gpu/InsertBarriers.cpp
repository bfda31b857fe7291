// Inserts barriers between conflicting accesses of one program.
//
// Threads run independently. So a barrier is needed between a write and a read by another thread, and between a read
// and an overwriting write by another thread. The pass walks the program with the set of *pending* accesses, those that
// no barrier follows yet. It inserts a barrier before the first access that conflicts with a pending one (Hazards.h).
//
// A loop's body is followed by itself. So bodies are walked twice, or as often as copies are ahead of their reads,
// which covers conflicts between iterations. These walks start without pending accesses. Accesses pending before the
// loop get one barrier before it, unless a barrier of the body comes first.

#include "lowering/Passes.h"
#include "lowering/gpu/Hazards.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_INSERTBARRIERS
#include "lowering/gpu/Passes.h.inc"

namespace {

using Pending = SmallVector<Access, 0>;

/// Two accesses that need a barrier in between.
struct Hazard {
  Access before, after;
};

class Barriers {
public:
  void walk(Block &block);
  /// An access that conflicts with a pending copy or product, and the latter.
  std::optional<Hazard> unawaited;

private:
  void visit(Operation &op);
  void visit(const Access &access);
  void visitLoop(const LoopCarried &loop);
  void visitBranch(scf::IfOp branch);
  void remember(const Access &access) {
    if (!llvm::is_contained(pending, access))
      pending.push_back(access);
  }

  void insertBarrier(OpBuilder builder, const Hazard &hazard);

  Pending pending;
  /// Accesses that a loop's iterations leave pending; cached, because a nested loop is visited repeatedly.
  llvm::DenseMap<Operation *, Pending> ownPending;
};

/// Walks code that has its barriers, with the accesses before it.
class Passage {
public:
  explicit Passage(const Pending &accesses)
      : before(accesses), ordered(accesses.size(), false), waits(accesses.size()) {}
  void walk(Block &block);
  /// Whether barriers order all accesses before the code with all that follow it.
  bool ordersAll() const {
    return llvm::all_of(ordered, [](bool each) { return each; });
  }

  std::optional<Hazard> hazard; // the first one without a barrier
  simt::WaitCopiesOp awaited;   // the wait for the hazard's copy in between
  Pending before;               // copies and products are in flight until a wait
  SmallVector<bool> ordered;    // whether there was a barrier since the access, or since the wait for it

private:
  SmallVector<simt::WaitCopiesOp> waits; // for copies among `before`
};

} // namespace

/// Marks the copies that a wait completes as accesses of the threads.
static void applyWait(Pending &pending, simt::WaitCopiesOp wait) {
  for (Access &access : pending)
    access.isCopy &= !access.isAwaited(static_cast<int64_t>(wait.getPending()));
}

/// Marks the products that a wait completes. They complete in order.
static void applyWait(Pending &pending, simt::WaitMultiplyOp wait) {
  for (Access &access : pending)
    access.isProduct &= access.newer < static_cast<int64_t>(wait.getPending());
}

/// Counts `op` among the products that have begun since each of `pending`, if it is one.
static void countProduct(Pending &pending, Operation &op) {
  if (beginsProduct(&op))
    for (Access &access : pending)
      access.newer += access.isProduct;
}

static void clearByBarrier(Pending &pending) {
  llvm::erase_if(pending, [](const Access &access) { return !access.isUnderWay(); });
}

// --- Code that has its barriers --------------------------------------------------------------------------------------

void Passage::walk(Block &block) {
  for (Operation &op : block) {
    if (hazard || ordersAll())
      return;
    if (isa<simt::BarrierOp>(op)) {
      for (const auto [access, isOrdered] : llvm::zip_equal(before, ordered))
        isOrdered |= !access.isUnderWay();
    } else if (auto wait = dyn_cast<simt::WaitCopiesOp>(op)) {
      const Pending earlier = before;
      applyWait(before, wait);
      for (const auto [now, then, by] : llvm::zip_equal(before, earlier, waits))
        if (then.isCopy && !now.isCopy)
          by = wait;
    } else if (auto wait = dyn_cast<simt::WaitMultiplyOp>(op)) {
      applyWait(before, wait);
    } else if (const std::optional<LoopCarried> loop = LoopCarried::of(&op)) {
      const SmallVector<bool> earlier = ordered;
      walk(*loop->body);
      if (!surelyRuns(*loop))
        ordered = earlier;
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      const SmallVector<bool> earlier = ordered;
      walk(branch.getThenRegion().front());
      const SmallVector<bool> afterThen = std::exchange(ordered, earlier);
      if (!branch.getElseRegion().empty())
        walk(branch.getElseRegion().front());
      for (const auto [isOrdered, wasOrdered] : llvm::zip_equal(ordered, afterThen))
        isOrdered &= wasOrdered;
    } else {
      countProduct(before, op);
      for (const Access &access : accessesOf(&op))
        for (const auto &[i, each] : llvm::enumerate(before))
          if (!hazard && !ordered[i] && conflict(each, access)) {
            hazard = Hazard{each, access};
            awaited = waits[i];
          }
    }
  }
}

// --- Code that gets them ---------------------------------------------------------------------------------------------

void Barriers::insertBarrier(OpBuilder builder, const Hazard &hazard) {
  simt::BarrierOp::create(builder, hazard.after.op->getLoc(),
                          builder.getStringAttr(describe(hazard.before, hazard.after)));
  for (Operation *loop = builder.getBlock()->getParentOp(); loop; loop = loop->getParentOp())
    ownPending.erase(loop);
}

void Barriers::visit(const Access &access) {
  const auto found = llvm::find_if(pending, [&](const Access &before) { return conflict(before, access); });
  if (found != pending.end() && found->isUnderWay()) {
    unawaited = Hazard{*found, access};
    return;
  }
  if (found != pending.end()) {
    insertBarrier(OpBuilder(access.op), {*found, access});
    clearByBarrier(pending);
  }
  remember(access);
}

/// The number of iterations after which a loop's accesses repeat.
static int64_t iterationsOf(const LoopCarried &loop) {
  int64_t iterations = runsOnceAtMost(loop) ? 1 : 2;
  for (auto fetch : loop.body->getOps<simt::FetchOp>())
    iterations = std::max(iterations, 1 + fetch.getSlot()[1]);
  return iterations;
}

void Barriers::visitLoop(const LoopCarried &loop) {
  Pending before = std::exchange(pending, {});
  if (const auto known = ownPending.find(loop.op); known != ownPending.end()) {
    pending = known->second;
  } else {
    for (int64_t left = iterationsOf(loop); left-- > 0;) {
      walk(*loop.body);
      for (Access &access : pending)
        access.leaveIteration(loop, /*goesOn=*/left > 0);
    }
    ownPending[loop.op] = pending;
  }
  Passage first(before);
  first.walk(*loop.body);
  // A barrier before the loop does not order copies for which the loop waits.
  while (first.awaited) {
    OpBuilder builder(first.hazard->after.op);
    if (first.awaited->getBlock() == loop.body)
      builder.setInsertionPointAfter(first.awaited);
    insertBarrier(builder, *first.hazard);
    first = Passage(before);
    first.walk(*loop.body);
  }
  if (first.hazard && first.hazard->before.isUnderWay())
    unawaited = first.hazard;
  else if (first.hazard)
    insertBarrier(OpBuilder(loop.op), *first.hazard);
  else
    for (const auto [access, after, isOrdered] : llvm::zip_equal(before, first.before, first.ordered))
      if (!surelyRuns(loop))
        remember(access);
      else if (!isOrdered)
        remember(after);
}

void Barriers::visitBranch(scf::IfOp branch) {
  const Pending before = pending;
  walk(branch.getThenRegion().front());
  const Pending after = std::exchange(pending, before);
  if (!branch.getElseRegion().empty())
    walk(branch.getElseRegion().front());
  for (const Access &access : after)
    remember(access);
}

void Barriers::visit(Operation &op) {
  if (const std::optional<LoopCarried> loop = LoopCarried::of(&op))
    return visitLoop(*loop);
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](scf::IfOp branch) { visitBranch(branch); })
      .Case([&](simt::BarrierOp) { clearByBarrier(pending); })
      .Case([&](simt::WaitCopiesOp wait) { applyWait(pending, wait); })
      .Case([&](simt::WaitMultiplyOp wait) { applyWait(pending, wait); })
      .Default([&](Operation *other) {
        countProduct(pending, *other);
        for (const Access &access : accessesOf(other))
          visit(access);
      });
}

void Barriers::walk(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    visit(op);
}

/// Reports operations on shared memory whose accesses are unknown, which would otherwise get no barriers.
static LogicalResult checkAccesses(func::FuncOp func) {
  const WalkResult walk = func.walk([](simt::BufferOp buffer) {
    for (Operation *user : buffer->getUsers())
      if (accessesOf(user).empty()) {
        user->emitOpError("expected an operation whose accesses of shared memory are known");
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  using InsertBarriersBase::InsertBarriersBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr("tile.kernel"))
      return;
    if (failed(checkAccesses(getOperation())))
      return signalPassFailure();
    Barriers barriers;
    barriers.walk(getOperation().front());
    if (const auto &hazard = barriers.unawaited) {
      auto error = hazard->after.op->emitOpError("expected a wait for the ")
                   << (hazard->before.isCopy ? "copies" : "products") << " that it meets";
      error.attachNote(hazard->before.op->getLoc()) << "which begin here";
      signalPassFailure();
    }
  }
};

} // namespace

} // namespace kiln::lowering::gpu

// Pipelines loops with as many stages as fit next to all other uses of shared memory.
//
//     pipeline loads with 3 stages ─ expand exchanges ─ allocate shared ── too many bytes ──► again with 2, then 1
//
// The passes run on the function itself, which is restored before each further attempt. A number of stages set by the
// kernel is never changed; if it does not fit, that is an error. In a persistent kernel the first operands of the next
// tile are copied early only if that takes no shared memory.

#include "lowering/gpu/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_FITSTAGES
#include "lowering/gpu/Passes.h.inc"

/// Whether the compiler chooses the stages of a loop.
static bool leavesStagesOpen(func::FuncOp func) {
  const auto isOpen = [](scf::ForOp loop) {
    return loop->hasAttr("tile.stages") ? WalkResult::advance() : WalkResult::interrupt();
  };
  return func->hasAttr("tile.kernel") && !func->hasAttr("tile.stages") && func.walk(isOpen).wasInterrupted();
}

/// Whether a ring has slots for the next tile, which are in use between the loops of two tiles.
static bool copiesEarly(func::FuncOp func) {
  const auto isEarly = [](simt::BufferOp ring) {
    return ring.getIdle() ? WalkResult::interrupt() : WalkResult::advance();
  };
  return func.walk(isEarly).wasInterrupted();
}

static int64_t sharedBytesOf(func::FuncOp func) {
  const auto bytes = func->getAttrOfType<IntegerAttr>("simt.shared_bytes");
  return bytes ? bytes.getInt() : 0;
}

namespace {
struct FitStages : impl::FitStagesBase<FitStages> {
  using FitStagesBase::FitStagesBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    for (int64_t stages = leavesStagesOpen(func) ? int64_t(PipelineLoadsOptions().stages) : 1;; --stages) {
      OwningOpRef<func::FuncOp> before(func.clone());
      if (failed(attempt(stages, /*early=*/true, anyBytes)))
        return signalPassFailure();
      if (copiesEarly(func)) {
        const int64_t bytes = sharedBytesOf(func);
        const OwningOpRef<func::FuncOp> early(func.clone());
        restore(*before);
        if (failed(attempt(stages, /*early=*/false, anyBytes)))
          return signalPassFailure();
        if (bytes <= sharedBytesOf(func))
          restore(*early);
      }
      if (sharedBytesOf(func) <= int64_t(limit))
        return;
      restore(*before);
      if (stages == 1) {
        if (failed(attempt(stages, /*early=*/false, limit))) // reports what does not fit
          signalPassFailure();
        return;
      }
    }
  }

private:
  static constexpr int64_t anyBytes = 1 << 30;

  LogicalResult attempt(int64_t stages, bool early, int64_t mostBytes) {
    OpPassManager passes(func::FuncOp::getOperationName());
    passes.addPass(createPipelineLoads({limit, stages, early}));
    passes.addPass(createExpandExchanges({storeMatrix}));
    passes.addPass(createCSEPass());
    passes.addPass(createAllocateShared({mostBytes}));
    return runPipeline(passes, getOperation());
  }

  /// Sets the function to a copy of `state`.
  void restore(func::FuncOp state) {
    func::FuncOp func = getOperation();
    func->setAttrs(state->getAttrDictionary());
    const OwningOpRef<func::FuncOp> copy(state.clone());
    func.getBody().takeBody((*copy).getBody());
  }
};
} // namespace

} // namespace kiln::lowering::gpu

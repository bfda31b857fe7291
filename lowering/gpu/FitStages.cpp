// Pipelines loops with as many stages as fit next to all other uses of shared memory.
//
//     pipeline loads with 3 stages ─ expand exchanges ─ allocate shared ── too many bytes ──► again with 2, then 1
//
// The passes run on the function itself, which is restored before each further attempt. A number of stages set by the
// kernel is never changed; if it does not fit, that is an error.

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

namespace {
struct FitStages : impl::FitStagesBase<FitStages> {
  using FitStagesBase::FitStagesBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    constexpr int64_t anyBytes = 1 << 30;
    for (int64_t stages = leavesStagesOpen(func) ? int64_t(PipelineLoadsOptions().stages) : 1;; --stages) {
      const OwningOpRef<func::FuncOp> before(stages > 1 ? func.clone() : nullptr);
      OpPassManager passes(func::FuncOp::getOperationName());
      passes.addPass(createPipelineLoads({limit, stages}));
      passes.addPass(createExpandExchanges({storeMatrix}));
      passes.addPass(createCSEPass());
      passes.addPass(createAllocateShared({before ? anyBytes : limit}));
      if (failed(runPipeline(passes, func)))
        return signalPassFailure();
      const auto bytes = func->getAttrOfType<IntegerAttr>("simt.shared_bytes");
      if (!before || !bytes || bytes.getInt() <= int64_t(limit))
        return;
      func->setAttrs((*before)->getAttrDictionary());
      func.getBody().takeBody((*before).getBody());
    }
  }
};
} // namespace

} // namespace kiln::lowering::gpu

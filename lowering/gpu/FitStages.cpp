// Pipelines loops with as many stages as fit next to all other uses of shared memory.
//
//     schedule copies, 3 stages ─ expand pipeline ─ expand exchanges ─ allocate shared ─ too many bytes ─► 2, 1 stages
//                                         ▲────── conversions in 2, 4, 8 rounds ──────┘
//
// What fits depends on the lifetimes of all buffers, so each attempt is expanded. The passes run on the function
// itself, which is restored to its schedule before each further attempt. A number of stages set by the kernel is never
// changed; if it does not fit, that is an error. In a persistent kernel the first operands of the next tile are copied
// early only if that takes no shared memory.

#include "lowering/Passes.h"
#include "lowering/gpu/Pipeline.h"

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

/// Removes the early copies of the next tile from the schedule, and returns whether there were any.
static bool removeNextTile(func::FuncOp func) {
  bool removed = false;
  func.walk([&](scf::ForOp loop) { removed |= loop->removeAttr(nextTileName) != nullptr; });
  return removed;
}

static int64_t sharedBytesOf(func::FuncOp func) {
  const auto bytes = func->getAttrOfType<IntegerAttr>("simt.shared_bytes");
  return bytes ? bytes.getInt() : 0;
}

/// The bytes of the largest tile that is written to shared memory and not part of a ring.
static int64_t bytesOfLargestExchange(func::FuncOp func) {
  int64_t most = 0;
  func.walk([&](simt::WriteOp write) {
    const auto tile = cast<RankedTensorType>(write.getValue().getType());
    most = std::max(most, tile.getNumElements() * std::max(1u, tile.getElementTypeBitWidth() / 8));
  });
  return most;
}

namespace {
struct FitStages : impl::FitStagesBase<FitStages> {
  using FitStagesBase::FitStagesBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    const OwningOpRef<func::FuncOp> before(func.clone());
    for (int64_t stages = leavesStagesOpen(func) ? int64_t(ScheduleCopiesOptions().stages) : 1;; --stages) {
      if (failed(schedule(stages)))
        return signalPassFailure();
      const OwningOpRef<func::FuncOp> early(func.clone());
      const bool isEarly = removeNextTile(func);
      const OwningOpRef<func::FuncOp> late(isEarly ? func.clone() : func::FuncOp());
      if (failed(expand(anyBytes)))
        return signalPassFailure();
      const FailureOr<bool> fits = fitsInRounds(isEarly ? *late : *early, maxRounds, limit);
      if (failed(fits) || (*fits && isEarly && failed(copyEarlyIfFree(*early))))
        return signalPassFailure();
      if (*fits)
        return;
      if (stages == 1)
        return reportTooMany();
      restore(*before);
    }
  }

private:
  static constexpr int64_t anyBytes = 1 << 30;
  static constexpr int maxRounds = 8, maxEarlyRounds = 4;

  LogicalResult schedule(int64_t stages) {
    OpPassManager passes(func::FuncOp::getOperationName());
    passes.addPass(createScheduleCopies({limit, stages, capability}));
    return runPipeline(passes, getOperation());
  }

  LogicalResult expand(int64_t conversionBytes) {
    OpPassManager passes(func::FuncOp::getOperationName());
    passes.addPass(createExpandPipeline({capability}));
    passes.addPass(createExpandExchanges({/*storeMatrix=*/capability >= 90, conversionBytes}));
    passes.addPass(createCSEPass());
    passes.addPass(createAllocateShared({anyBytes}));
    return runPipeline(passes, getOperation());
  }

  /// After an attempt with the schedule of `scheduled`: whether it takes at most `bytes`, if need be with conversions
  /// in rounds.
  FailureOr<bool> fitsInRounds(func::FuncOp scheduled, int64_t most, int64_t bytes) {
    const int64_t whole = bytesOfLargestExchange(getOperation());
    for (int64_t rounds = 2; sharedBytesOf(getOperation()) > bytes; rounds *= 2) {
      if (rounds > most || bytesOfLargestExchange(getOperation()) > whole * 2 / rounds)
        return false;
      restore(scheduled);
      if (failed(expand(whole / rounds)))
        return failure();
    }
    return true;
  }

  /// After the attempt with the fewest bytes: reports them.
  void reportTooMany() {
    OpPassManager passes(func::FuncOp::getOperationName());
    passes.addPass(createAllocateShared({limit}));
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }

  /// After an attempt without early copies: replaces it by one with the schedule `early`, if that takes no more bytes.
  LogicalResult copyEarlyIfFree(func::FuncOp early) {
    const OwningOpRef<func::FuncOp> late(getOperation().clone());
    restore(early);
    if (failed(expand(anyBytes)))
      return failure();
    const FailureOr<bool> isFree = fitsInRounds(early, maxEarlyRounds, sharedBytesOf(*late));
    if (succeeded(isFree) && !*isFree)
      restore(*late);
    return isFree;
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

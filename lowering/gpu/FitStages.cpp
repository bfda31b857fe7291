// Pipelines loops with as many stages as fit next to all other uses of shared memory.
//
//     pipeline loads with 3 stages ─ expand exchanges ─ allocate shared ── too many bytes ──► again with 2, then 1
//                                        ▲───────── conversions in 2, 4, 8 rounds ─┘
//
// The passes run on the function itself, which is restored before each further attempt. A number of stages set by the
// kernel is never changed; if it does not fit, that is an error. In a persistent kernel the first operands of the next
// tile are copied early only if that takes no shared memory.

#include "lowering/Passes.h"

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
    for (int64_t stages = leavesStagesOpen(func) ? int64_t(PipelineLoadsOptions().stages) : 1;; --stages) {
      const OwningOpRef<func::FuncOp> before(func.clone());
      if (failed(attempt(stages, /*early=*/true, anyBytes, anyBytes)))
        return signalPassFailure();
      const bool isEarly = copiesEarly(func);
      const OwningOpRef<func::FuncOp> early(isEarly ? func.clone() : func::FuncOp());
      if (isEarly && failed(attemptOn(*before, stages, /*early=*/false, anyBytes)))
        return signalPassFailure();
      const FailureOr<bool> fits = fitsInRounds(*before, stages, /*early=*/false, limit);
      if (failed(fits) || (*fits && isEarly && failed(copyEarlyIfFree(*before, *early, stages))))
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

  LogicalResult attempt(int64_t stages, bool early, int64_t conversionBytes, int64_t maxBytes) {
    OpPassManager passes(func::FuncOp::getOperationName());
    passes.addPass(createPipelineLoads({limit, stages, early}));
    passes.addPass(createExpandExchanges({storeMatrix, conversionBytes}));
    passes.addPass(createCSEPass());
    passes.addPass(createAllocateShared({maxBytes}));
    return runPipeline(passes, getOperation());
  }

  LogicalResult attemptOn(func::FuncOp before, int64_t stages, bool early, int64_t conversionBytes) {
    restore(before);
    return attempt(stages, early, conversionBytes, anyBytes);
  }

  /// After an attempt: whether it takes at most `bytes`, if need be with conversions in rounds.
  FailureOr<bool> fitsInRounds(func::FuncOp before, int64_t stages, bool early, int64_t bytes) {
    const int64_t whole = bytesOfLargestExchange(getOperation());
    for (int64_t rounds = 2; sharedBytesOf(getOperation()) > bytes; rounds *= 2) {
      if (rounds > (early ? maxEarlyRounds : maxRounds) || bytesOfLargestExchange(getOperation()) > whole * 2 / rounds)
        return false;
      if (failed(attemptOn(before, stages, early, whole / rounds)))
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

  /// After an attempt without early copies: replaces it by one with them, such as `early`, if that takes no more bytes.
  LogicalResult copyEarlyIfFree(func::FuncOp before, func::FuncOp early, int64_t stages) {
    const OwningOpRef<func::FuncOp> late(getOperation().clone());
    restore(early);
    const FailureOr<bool> isFree = fitsInRounds(before, stages, /*early=*/true, sharedBytesOf(*late));
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

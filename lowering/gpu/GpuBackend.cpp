// The GPU's pass pipeline, and the key of its code.
//
//     tile ─> layouts: coalesce, instructions, propagate ─> exchanges through shared memory, barriers
//          ─> distribute: tiles become vectors of one thread ─> math ─> kernel arguments ─> LLVM dialect, PTX ─> LLVM

#include "lowering/gpu/GpuBackend.h"

#include "dialect/dsl/Nearest.h"
#include "dialect/dsl/Types.h"
#include "dialect/simt/SimtDialect.h"
#include "lowering/Backend.h"
#include "lowering/Passes.h"
#include "lowering/gpu/GpuTarget.h"
#include "lowering/gpu/Threads.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace kiln::lowering::gpu {

const std::vector<GpuTarget> &gpuTargets() {
  static const std::vector<GpuTarget> targets = {
      {"sm_80", 80, 163 << 10, 70},
      {"sm_86", 86, 99 << 10, 71},
      {"sm_89", 89, 99 << 10, 78, /*coarseBytes=*/true},
      {"sm_90a", 90, 227 << 10, 80},
      {"sm_100a", 100, 227 << 10, 86},
      {"sm_120", 120, 99 << 10, 87, /*coarseBytes=*/true},
  };
  return targets;
}

const GpuTarget *gpuNamed(const std::string &name) {
  const auto &targets = gpuTargets();
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const GpuTarget &target) { return target.architecture == name; });
  return found == targets.end() ? nullptr : &*found;
}

using mlir::func::FuncOp;

static constexpr Stage gpuStages[] = {{"layouts", "gpu-adopt-layouts"},
                                      {"exchanges", "gpu-insert-barriers"},
                                      {"simt", "gpu-distribute"},
                                      {"llvm-dialect", "reconcile-unrealized-casts"},
                                      {"llvm"},
                                      {"ptx"},
                                      {"cubin"}};

/// The suffix of an architecture's name that requests a cubin in addition to the PTX.
static constexpr llvm::StringLiteral cubinSuffix = ":cubin";
/// The suffix that makes kernels check their assumptions.
static constexpr llvm::StringLiteral checkedSuffix = ":checked";

namespace {
class GpuBackend : public Backend {
public:
  /// Throws Error (device) if no cubin can be made on this machine.
  GpuBackend(const GpuTarget &target, bool cubin, bool checked)
      : target(target), cubin(cubin), checked(checked), ownName(target.architecture + (cubin ? cubinSuffix.str() : "")),
        ownKey(cubin ? ownName + " " + cubinLinkerVersion() : ownName) {}

  const std::string &name() const override { return ownName; }
  const std::string &key() const override { return ownKey; }
  FactKinds facts() const override {
    return {.innerStrides = 1,
            .alignment = true,
            .stridesBy16 = true,
            .extentBy16 = true,
            .fits32 = true,
            .warps = true,
            .stages = true,
            .problems = true,
            .checksAssumptions = checked};
  }
  KernelLimits limits() const override { return {.elements = maxElements, .lowered = false}; }
  bool tellsLines() const override { return true; }
  bool hasNarrowArithmetic() const override { return true; }
  ByteProducts byteProducts() const override {
    return target.capability < 89 ? ByteProducts::widened
           : target.coarseBytes   ? ByteProducts::coarse
                                  : ByteProducts::exact;
  }
  llvm::ArrayRef<Stage> stages() const override { return llvm::ArrayRef(gpuStages).drop_back(cubin ? 0 : 1); }
  void registerDialects(mlir::DialectRegistry &registry) const override { registry.insert<simt::SimtDialect>(); }
  void registerPasses() const override { registerGpuPasses(); }
  void addPasses(mlir::OpPassManager &pm, llvm::StringRef until) const override;
  std::vector<char> emit(llvm::Module &module, const StageSink &sink) const override;
  void explain(llvm::StringRef stage, mlir::ModuleOp module, Explanation &explanation) const override {
    if (stage == "layouts")
      explainLayouts(module, explanation);
    else if (stage == "exchanges")
      explainExchanges(module, explanation);
  }
  std::string emitCommand() const override { return "llc-22 -mcpu=" + target.architecture + " -o /dev/null"; }

private:
  void addLlvmPasses(mlir::OpPassManager &pm) const;

  const GpuTarget target;
  const bool cubin, checked;
  const std::string ownName, ownKey;
};
} // namespace

std::vector<char> GpuBackend::emit(llvm::Module &module, const StageSink &sink) const {
  std::vector<char> code = emitPtx(module, target, sink);
  if (cubin) {
    const std::vector<char> made = emitCubin(code, target);
    if (sink)
      sink("cubin", {made.begin(), made.end()});
    code.push_back('\0');
    code.insert(code.end(), made.begin(), made.end());
  }
  return code;
}

void GpuBackend::addPasses(mlir::OpPassManager &pm, llvm::StringRef until) const {
  pm.addNestedPass<FuncOp>(createSplitLoops());
  pm.addPass(createPlaceConstants());
  pm.addNestedPass<FuncOp>(createChooseWarps({/*groups=*/target.capability == 90}));
  pm.addNestedPass<FuncOp>(createPadSorts());
  pm.addNestedPass<FuncOp>(createCoalesceAccesses());
  pm.addNestedPass<FuncOp>(createSelectInstructions({/*groups=*/target.capability == 90}));
  pm.addNestedPass<FuncOp>(createPropagateLayouts());
  pm.addNestedPass<FuncOp>(createAdoptLayouts());
  if (until == "layouts")
    return;
  pm.addNestedPass<FuncOp>(mlir::createCSEPass()); // merges equal conversions of several loops
  pm.addNestedPass<FuncOp>(createNarrowLoops());
  pm.addNestedPass<FuncOp>(createFitStages({target.sharedBytes, target.capability}));
  pm.addNestedPass<FuncOp>(createInsertBarriers());
  if (until == "exchanges")
    return;
  pm.addNestedPass<FuncOp>(createDistribute());
  if (until != "simt")
    addLlvmPasses(pm);
}

void GpuBackend::addLlvmPasses(mlir::OpPassManager &pm) const {
  pm.addNestedPass<FuncOp>(createDropAssumptions());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
  pm.addNestedPass<FuncOp>(createLowerMath());
  pm.addPass(createLowerKernelArguments());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
  pm.addNestedPass<FuncOp>(mlir::createLoopInvariantCodeMotionPass());
  pm.addPass(mlir::arith::createArithExpandOpsPass());
  pm.addPass(mlir::createSCFToControlFlowPass());
  addConvertToLlvm(pm);
  pm.addPass(createLowerToPtx());
  pm.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass({mlir::LLVM::DIEmissionKind::DebugDirectivesOnly}));
  pm.addPass(mlir::createReconcileUnrealizedCastsPass());
}

std::shared_ptr<const Backend> openBackend(const std::string &name) {
  if (!llvm::StringRef(name).starts_with("sm_"))
    return nullptr;
  llvm::StringRef architecture = name;
  bool checked = architecture.consume_back(checkedSuffix);
  const bool cubin = architecture.consume_back(cubinSuffix);
  checked |= architecture.consume_back(checkedSuffix); // in any order
  if (const GpuTarget *target = gpuNamed(architecture.str()))
    return std::make_shared<GpuBackend>(*target, cubin, checked);
  std::vector<std::string> names;
  for (const GpuTarget &target : gpuTargets())
    names.push_back(target.architecture);
  throw Error(unknownName("GPU architecture", name, names));
}

} // namespace kiln::lowering::gpu

// The CPU's pass pipeline, and the key of its code.
//
//     tile ─┬─ reference: linalg ─> plain loops ───────────────────────┬─> math ─> scratch ─> kernel arguments
//           └─ fast: forward, pin, fuse, select, place, pack ─> loops ─┘      ─> LLVM dialect ─> LLVM ─> ELF object
//
// Nothing canonicalises after the lowering. MLIR 22 would turn chains of vector inserts into one operation with one
// operand per element, for which LLVM generates bad code.

#include "lowering/cpu/CpuBackend.h"

#include "dialect/dsl/Types.h"
#include "lowering/Backend.h"
#include "lowering/Passes.h"
#include "lowering/cpu/CpuDialect.h"
#include "lowering/cpu/CpuTarget.h"
#include "lowering/cpu/Evaluator.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/AMX/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/X86Vector/Transforms.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace kiln::lowering::cpu {

using mlir::func::FuncOp;

/// The first is used by the reference backend only.
static constexpr Stage cpuStages[] = {{"linalg", "generic-lower-to-linalg"},
                                      {"loops", "cpu-lower-kernel-arguments"},
                                      {"llvm-dialect", "reconcile-unrealized-casts"},
                                      {"llvm"},
                                      {"asm"},
                                      {"obj"}};

/// Registers the upstream passes of both targets' pipelines, so that flags such as --mlir-print-ir-after can name them.
/// Registering all upstream passes would take 15 seconds to compile.
static void registerUpstreamPasses() {
  mlir::registerPass([] { return mlir::createConvertLinalgToLoopsPass(); });
  mlir::registerPass([] { return mlir::createSCFToControlFlowPass(); });
  mlir::registerPass([] { return mlir::createLowerAffinePass(); });
  mlir::registerPass([] { return mlir::createConvertToLLVMPass(); });
  mlir::registerPass([] { return mlir::createReconcileUnrealizedCastsPass(); });
  mlir::registerPass([] { return mlir::arith::createArithExpandOpsPass(); });
  mlir::registerPass([] { return mlir::memref::createExpandStridedMetadataPass(); });
}

namespace {
class CpuBackend : public Backend {
public:
  /// With `amx`, products are compiled for AMX, whether this CPU has it or not.
  CpuBackend(std::string name, CpuTarget target, bool isReference, bool amx)
      : target(std::move(target)), isReference(isReference), emulatesTiles(amx && !this->target.tiles),
        targetName(std::move(name)), codeKey(keyOf()) {}

  const std::string &name() const override { return targetName; }
  const std::string &key() const override { return codeKey; }
  /// Elements further apart are read one by one for any stride.
  FactKinds facts() const override {
    return {.innerStrides = Machine{target.vectorBits}.widestStride(), .checksAssumptions = isReference};
  }
  KernelLimits limits() const override { return {}; }
  bool tellsLines() const override { return false; }
  bool hasNarrowArithmetic() const override { return false; }
  llvm::ArrayRef<Stage> stages() const override { return llvm::ArrayRef(cpuStages).drop_front(isReference ? 0 : 1); }
  void registerDialects(mlir::DialectRegistry &registry) const override;
  void registerPasses() const override {
    generic::registerGenericPasses();
    registerCpuPasses();
    registerUpstreamPasses();
  }
  void addPasses(mlir::OpPassManager &pm, llvm::StringRef until) const override;
  std::vector<char> emit(llvm::Module &module, const StageSink &sink) const override {
    return emitObject(module, target, isReference, sink);
  }
  void explain(llvm::StringRef stage, mlir::ModuleOp module, Explanation &explanation) const override {
    if (isReference)
      return;
    if (stage == "tile")
      explainProducts(module, target, explanation);
    else if (stage == "loops")
      explainLoops(module, explanation);
  }
  std::string emitCommand() const override { return "llc-22 -mcpu=" + target.cpu + " -o /dev/null"; }

private:
  std::string keyOf() const {
    return llvm::join(llvm::ArrayRef<std::string>{isReference     ? "generic"
                                                  : emulatesTiles ? "amx"
                                                                  : "fast",
                                                  target.cpu, target.features, std::to_string(target.vectorBits),
                                                  std::to_string(target.registers)},
                      ";");
  }
  void addLoopPasses(mlir::OpPassManager &pm) const;
  void addLlvmPasses(mlir::OpPassManager &pm) const;

  const CpuTarget target;
  const bool isReference, emulatesTiles;
  const std::string targetName, codeKey;
};

/// This interface for the one dialect in use for which MLIR lacks it.
struct X86VectorToLlvm : mlir::ConvertToLLVMPatternInterface {
  using ConvertToLLVMPatternInterface::ConvertToLLVMPatternInterface;

  void populateConvertToLLVMConversionPatterns(mlir::ConversionTarget &target, mlir::LLVMTypeConverter &types,
                                               mlir::RewritePatternSet &patterns) const override {
    target.addIllegalDialect<mlir::x86vector::X86VectorDialect>();
    mlir::populateX86VectorLegalizeForLLVMExportPatterns(types, patterns);
  }
};
} // namespace

void CpuBackend::registerDialects(mlir::DialectRegistry &registry) const {
  registry.insert<CpuDialect, mlir::amx::AMXDialect, mlir::linalg::LinalgDialect, mlir::x86vector::X86VectorDialect,
                  mlir::affine::AffineDialect>();
  mlir::registerConvertAMXToLLVMInterface(registry);
  registry.addExtension(+[](mlir::MLIRContext *, mlir::x86vector::X86VectorDialect *dialect) {
    dialect->addInterfaces<X86VectorToLlvm>();
  });
}

void CpuBackend::addPasses(mlir::OpPassManager &pm, llvm::StringRef until) const {
  pm.addPass(createWatchWaits());
  if (isReference) {
    pm.addNestedPass<FuncOp>(generic::createLowerToLinalg());
    if (until == "linalg")
      return;
    pm.addNestedPass<FuncOp>(mlir::createConvertLinalgToLoopsPass());
  } else {
    pm.addPass(createPlaceConstants());
    if (target.tiles || emulatesTiles)
      pm.addNestedPass<FuncOp>(createSplitProducts());
    pm.addNestedPass<FuncOp>(createForwardLoads());
    pm.addNestedPass<FuncOp>(createPinCarriedTiles());
    pm.addNestedPass<FuncOp>(createFuseEpilogues({target.vectorBits}));
    pm.addNestedPass<FuncOp>(createSelectProducts({target.bf16Pairs, target.i8Quads, target.tiles || emulatesTiles}));
    pm.addNestedPass<FuncOp>(createPlaceTiles({target.vectorBits}));
    pm.addNestedPass<FuncOp>(createPackOperands({target.vectorBits, target.registers}));
    pm.addNestedPass<FuncOp>(createLowerTiles({target.vectorBits, target.registers}));
    if (emulatesTiles)
      pm.addPass(createEmulateAmx());
  }
  addLoopPasses(pm);
  if (until != "loops")
    addLlvmPasses(pm);
}

/// The part after tensors are lowered: functions, scratch memory and arguments.
void CpuBackend::addLoopPasses(mlir::OpPassManager &pm) const {
  pm.addNestedPass<FuncOp>(createDropAssumptions());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
  LowerMathOptions math;
  math.scaleInstruction = target.vectorBits == 512;
  math.roundInstruction = target.bf16Rounding;
  pm.addNestedPass<FuncOp>(createLowerMath(math));
  pm.addNestedPass<FuncOp>(createAllocateScratch());
  pm.addPass(createLowerKernelArguments());
}

void CpuBackend::addLlvmPasses(mlir::OpPassManager &pm) const {
  pm.addPass(mlir::memref::createExpandStridedMetadataPass());
  pm.addPass(mlir::createLowerAffinePass());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
  pm.addNestedPass<FuncOp>(mlir::createLoopInvariantCodeMotionPass());
  pm.addPass(mlir::arith::createArithExpandOpsPass());
  mlir::SCFToControlFlowPassOptions control;
  control.allowPatternRollback = false; // no rollback, so no log of changes
  pm.addPass(mlir::createSCFToControlFlowPass(control));
  addConvertToLlvm(pm);
  pm.addPass(mlir::createReconcileUnrealizedCastsPass());
}

std::shared_ptr<const Backend> openBackend(const std::string &name) {
  llvm::StringRef processor = name;
  const bool isReference = processor.consume_back(":generic");
  const bool amx = !isReference && processor.consume_back(":amx");
  if (!processor.consume_front("cpu:") && processor == "cpu")
    processor = "native";
  CpuTarget target = cpuNamed(processor.str());
  if (amx && target.vectorBits < 512)
    throw Error("target '" + name + "': expected a processor with AVX-512, but '" + target.cpu + "' has not got it",
                Fault::device);
  return std::make_shared<CpuBackend>(name, std::move(target), isReference, amx);
}

} // namespace kiln::lowering::cpu

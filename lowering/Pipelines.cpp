// The order of all passes, from a tile module to an object.
//
//     tile ─> verify ─> count loops ─> expand ops ─┬─ generic: linalg ─> plain loops ────────────────┬─> math
//                                                  └─ fast: forward loads, pin, loops over vectors ─┘
//          ─> scratch ─> kernel arguments ─> LLVM dialect ─> LLVM ─> object
//
// Nothing after our own lowering canonicalises: MLIR 22 would turn chains of vector inserts into one operation with as
// many operands as elements, which LLVM compiles badly.

#include "lowering/Pipelines.h"

#include "dialect/dsl/Types.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"
#include "lowering/Passes.h"
#include "lowering/Reproducer.h"
#include "lowering/cpu/EmitObject.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::lowering {

using mlir::func::FuncOp;

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::func::FuncDialect, mlir::memref::MemRefDialect, mlir::linalg::LinalgDialect,
                  mlir::vector::VectorDialect, mlir::x86vector::X86VectorDialect, mlir::cf::ControlFlowDialect,
                  mlir::affine::AffineDialect, mlir::ub::UBDialect, mlir::LLVM::LLVMDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

// --- The two pipelines -----------------------------------------------------------------------------------------------

/// Upstream's simplifications, safe anywhere above the loops.
static void addSimplify(mlir::OpPassManager &pm) {
  pm.addNestedPass<FuncOp>(mlir::createCanonicalizerPass());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
}

static LowerTilesOptions blockSizes(const CpuTarget &target) {
  LowerTilesOptions options;
  options.vectorBits = target.vectorBits;
  options.registers = target.registers;
  return options;
}

void buildCpuLoopsPipeline(mlir::OpPassManager &pm, const CpuTarget &target, const CpuOptions &options) {
  pm.addPass(createVerifyKernels());
  pm.addPass(createDeclareConsole());
  pm.addNestedPass<FuncOp>(createCountLoops());
  addSimplify(pm);
  pm.addNestedPass<FuncOp>(createExpandOps());
  addSimplify(pm);
  if (options.generic) {
    pm.addNestedPass<FuncOp>(createLowerToLinalg());
    pm.addNestedPass<FuncOp>(mlir::createConvertLinalgToLoopsPass());
  } else {
    pm.addNestedPass<FuncOp>(createForwardLoads());
    pm.addNestedPass<FuncOp>(createPinCarriedTiles());
    pm.addNestedPass<FuncOp>(createFuseEpilogues());
    pm.addNestedPass<FuncOp>(createLowerTiles(blockSizes(target)));
  }
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
  LowerMathOptions math;
  math.scaleInstruction = target.vectorBits == 512;
  pm.addNestedPass<FuncOp>(createLowerMath(math));
  pm.addNestedPass<FuncOp>(createAllocateScratch());
  pm.addPass(createLowerKernelArguments());
}

void buildCpuLlvmPipeline(mlir::OpPassManager &pm, const CpuTarget &target) {
  pm.addPass(mlir::memref::createExpandStridedMetadataPass());
  pm.addPass(mlir::createLowerAffinePass());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
  pm.addNestedPass<FuncOp>(mlir::createLoopInvariantCodeMotionPass());
  pm.addPass(mlir::arith::createArithExpandOpsPass());
  pm.addPass(mlir::createSCFToControlFlowPass());
  mlir::ConvertVectorToLLVMPassOptions vectors;
  vectors.force32BitVectorIndices = false; // 32 bits would make a mask of a large offset wrong
  vectors.x86Vector = true;
  pm.addPass(mlir::createConvertVectorToLLVMPass(vectors));
  pm.addPass(mlir::createConvertMathToLLVMPass());
  pm.addPass(mlir::createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(mlir::createArithToLLVMConversionPass());
  pm.addPass(mlir::createUBToLLVMConversionPass());
  pm.addPass(mlir::createConvertControlFlowToLLVMPass());
  pm.addPass(mlir::createConvertFuncToLLVMPass());
  pm.addPass(mlir::createReconcileUnrealizedCastsPass());
}

namespace {
/// What `--kiln-cpu="cpu=x86-64-v3 until=loops"` can say.
struct CpuPipelineOptions : mlir::PassPipelineOptions<CpuPipelineOptions> {
  Option<std::string> cpu{*this, "cpu", llvm::cl::desc("CPU by LLVM's name"), llvm::cl::init("native")};
  Option<std::string> until{*this, "until", llvm::cl::desc("last stage: loops or llvm"), llvm::cl::init("llvm")};
};
} // namespace

/// Adds the pipeline that `text` asks for, or reports which of its options is wrong.
static mlir::LogicalResult addPipeline(mlir::OpPassManager &pm, llvm::StringRef text, bool generic,
                                       llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report) {
  CpuPipelineOptions flags;
  std::string unknown;
  llvm::raw_string_ostream stream(unknown);
  if (mlir::failed(flags.parseFromString(text, stream)))
    return report(llvm::StringRef(unknown).trim());
  if (flags.until != "loops" && flags.until != "llvm")
    return report("for the --until option: expected loops or llvm, but got '" + flags.until + "'");
  CpuTarget target;
  try { // LLVM's frames are between here and whoever could catch it
    target = cpuNamed(flags.cpu);
  } catch (const Error &error) {
    return report(llvm::Twine("for the --cpu option: ") + error.what());
  }
  CpuOptions options;
  options.generic = generic;
  buildCpuLoopsPipeline(pm, target, options);
  if (flags.until == "llvm")
    buildCpuLlvmPipeline(pm, target);
  return mlir::success();
}

static void registerPipeline(llvm::StringRef name, llvm::StringRef description, bool generic) {
  mlir::registerPassPipeline(
      name, description,
      [generic](mlir::OpPassManager &pm, llvm::StringRef text,
                llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report) {
        return addPipeline(pm, text, generic, report);
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> show) { show(CpuPipelineOptions()); });
}

void registerPipelines() {
  registerPipeline("kiln-cpu", "tile to the LLVM dialect by the fast CPU pipeline", false);
  registerPipeline("kiln-cpu-generic", "tile to the LLVM dialect by the oracle: plain loops", true);
}

// --- Compiling -------------------------------------------------------------------------------------------------------

std::string stageText(mlir::Operation *op, mlir::OpPrintingFlags flags) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, flags.printNameLocAsPrefix());
  return text;
}

static mlir::OpPrintingFlags withoutLocations() { return mlir::OpPrintingFlags().enableDebugInfo(false); }

namespace {
/// Hands the module to the sink after the passes that end a stage.
struct StageInstrumentation : mlir::PassInstrumentation {
  explicit StageInstrumentation(const StageSink &sink) : sink(sink) {}
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    const llvm::StringRef stage = llvm::StringSwitch<llvm::StringRef>(pass->getArgument())
                                      .Case("generic-lower-to-linalg", "linalg")
                                      .Case("cpu-lower-kernel-arguments", "loops")
                                      .Case("reconcile-unrealized-casts", "llvm-dialect")
                                      .Default("");
    if (stage.empty())
      return;
    const auto module = llvm::dyn_cast<mlir::ModuleOp>(op);
    sink(stage.str(), stageText(module ? module : op->getParentOfType<mlir::ModuleOp>(), withoutLocations()));
  }
  const StageSink &sink;
};
} // namespace

namespace {
/// Notes the pass that is running.
struct CurrentPass : mlir::PassInstrumentation {
  explicit CurrentPass(llvm::StringRef &name) : name(name) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override { name = pass->getArgument(); }
  void runAfterPass(mlir::Pass *, mlir::Operation *) override { name = ""; }
  llvm::StringRef &name;
};
} // namespace

static std::string kernelName(mlir::ModuleOp module) {
  std::string name = "kernel";
  module.walk([&](FuncOp func) {
    if (func->hasAttr("tile.kernel"))
      name = func.getName().str();
  });
  return name;
}

/// Throws what a failed compilation has to say: the collected diagnostics, for an error of the compiler's own the way
/// to repeat it. `reason` is what stopped the compiler, if something did, and `pass` where.
[[noreturn]] static void throwFailure(const ErrorCollector &errors, const std::string &reason, llvm::StringRef pass,
                                      mlir::PassManager &pm, mlir::ModuleOp original, const CpuTarget &target) {
  std::string text = errors.text();
  if (!reason.empty())
    text += (pass.empty() ? "" : "in the pass '" + pass.str() + "': ") + reason;
  if (errors.onlyUserErrors() && reason.empty())
    throw Error(text);
  if (text.empty())
    text = "a pass failed without saying why";
  if (text.back() != '\n')
    text += '\n';
  const std::string line = writeReproducer(pm, original, kernelName(original), text);
  text += line;
  if (!reason.empty() && pass.empty() &&
      llvm::StringRef(line).starts_with("run")) // the passes went well: LLVM's tools go on where they end
    text += " | mlir-translate-22 --mlir-to-llvmir | llc-22 -mcpu=" + target.cpu + " -o /dev/null";
  throw Error("internal error while compiling '" + kernelName(original) + "':\n" + text, Fault::internal);
}

std::vector<char> compileToObject(mlir::ModuleOp module, const CpuTarget &target, const CpuOptions &options,
                                  const StageSink &sink) {
  mlir::MLIRContext *const context = module.getContext();
  if (sink)
    sink("tile", stageText(module, withoutLocations()));
  // The passes change a copy, which a crash leaves in a state that nobody can even destroy. The caller's stays whole.
  mlir::OwningOpRef<mlir::ModuleOp> work(module.clone());
  ErrorCollector errors(context);
  mlir::PassManager pm(context, mlir::ModuleOp::getOperationName());
  pm.enableVerifier(sink != nullptr);
  (void)mlir::applyPassManagerCLOptions(pm); // what programs that registered MLIR's flags were asked for
  mlir::applyDefaultTimingPassManagerCLOptions(pm);
  llvm::StringRef pass;
  pm.addInstrumentation(std::make_unique<CurrentPass>(pass));
  if (sink)
    pm.addInstrumentation(std::make_unique<StageInstrumentation>(sink));
  buildCpuLoopsPipeline(pm, target, options);
  buildCpuLlvmPipeline(pm, target);
  std::vector<char> object;
  std::string reason;
  bool failed = false;
  try {
    withFatalErrorsThrown([&] {
      failed = mlir::failed(pm.run(*work));
      if (failed)
        return;
      llvm::LLVMContext llvmContext;
      const std::unique_ptr<llvm::Module> llvmModule =
          mlir::translateModuleToLLVMIR(*work, llvmContext, kernelName(module));
      failed = !llvmModule;
      if (!failed)
        object = emitObject(*llvmModule, target, sink);
    });
  } catch (const BackendError &error) {
    failed = true;
    reason = error.what();
    (void)work.release();
  } catch (...) { // no memory, or what a stage's receiver has thrown
    (void)work.release();
    throw;
  }
  if (failed)
    throwFailure(errors, reason, pass, pm, module, target);
  return object;
}

} // namespace kiln::lowering

// Compiles a module for any target: runs the common passes, keeps the stages, and converts failures to errors.
//
//     tile ─> verify ─> console ─> count loops ─> expand ops ─> the backend's passes ─> LLVM IR ─> the backend's code

#include "lowering/Driver.h"

#include "dialect/dsl/Types.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Backend.h"
#include "lowering/Crashes.h"
#include "lowering/Diagnostics.h"
#include "lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <exception>

namespace kiln::lowering {

using mlir::func::FuncOp;

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::func::FuncDialect, mlir::memref::MemRefDialect, mlir::LLVM::LLVMDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  registerLlvmConversions(registry);
  for (const auto &backend : allBackends())
    backend->registerDialects(registry);
}

void registerPasses() {
  registerTilePasses();
  for (const auto &backend : allBackends())
    backend->registerPasses();
}

// --- The pipeline ----------------------------------------------------------------------------------------------------

/// Upstream's simplifications. They are safe at any stage before the lowering to loops.
static void addSimplify(mlir::OpPassManager &pm) {
  pm.addNestedPass<FuncOp>(mlir::createCanonicalizerPass());
  pm.addNestedPass<FuncOp>(mlir::createCSEPass());
}

void buildPipeline(mlir::OpPassManager &pm, const Backend &backend, llvm::StringRef until) {
  VerifyKernelsOptions gate;
  gate.elements = backend.limits().elements;
  gate.lowered = backend.limits().lowered;
  pm.addPass(createVerifyKernels(gate));
  pm.addPass(createDeclareConsole());
  pm.addNestedPass<FuncOp>(createCountLoops());
  addSimplify(pm);
  ExpandOpsOptions arithmetic;
  arithmetic.nativeNarrow = backend.hasNarrowArithmetic();
  arithmetic.byteProducts = backend.byteProducts() != Backend::ByteProducts::widened;
  arithmetic.coarse = backend.byteProducts() == Backend::ByteProducts::coarse;
  pm.addNestedPass<FuncOp>(createExpandOps(arithmetic));
  addSimplify(pm);
  pm.addNestedPass<FuncOp>(createUnrollLoops());
  pm.addNestedPass<FuncOp>(createRotateLoops());
  backend.addPasses(pm, until);
}

namespace {
/// The options of the pipeline, as in `--kiln="target=x86-64-v3 until=loops"`.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("target of the compilation"), llvm::cl::init("cpu")};
  Option<std::string> until{*this, "until", llvm::cl::desc("last stage to run (default: all)"), llvm::cl::init("")};
};
} // namespace

/// Whether a pass of the backend ends the stage. `known` receives all such stages, as `linalg, loops or llvm-dialect`.
static bool isPassStage(const Backend &backend, llvm::StringRef stage, std::string &known) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Stage &candidate : backend.stages())
    if (candidate.after)
      names.push_back(candidate.name);
  known = llvm::join(llvm::ArrayRef(names).drop_back(), ", ") + " or " + names.back().str();
  return llvm::is_contained(names, stage);
}

/// Adds the pipeline that the options in `text` select, or reports the wrong option.
static mlir::LogicalResult addPipeline(mlir::OpPassManager &pm, llvm::StringRef text,
                                       llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report) {
  PipelineOptions flags;
  std::string unknown;
  llvm::raw_string_ostream stream(unknown);
  if (mlir::failed(flags.parseFromString(text, stream)))
    return report(llvm::StringRef(unknown).trim());
  std::shared_ptr<const Backend> backend;
  try { // the exception must not pass LLVM's frames
    backend = openBackend(flags.target);
  } catch (const Error &error) {
    return report(llvm::Twine("for the --target option: ") + error.what());
  }
  std::string known;
  if (!flags.until.empty() && !isPassStage(*backend, flags.until, known))
    return report("for the --until option: expected " + known + ", but got '" + flags.until + "'");
  buildPipeline(pm, *backend, flags.until);
  return mlir::success();
}

void registerPipeline() {
  mlir::registerPassPipeline(
      "kiln", "from the tile dialect to a module that translates to LLVM, for any target",
      [](mlir::OpPassManager &pm, llvm::StringRef text,
         llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report) { return addPipeline(pm, text, report); },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> show) { show(PipelineOptions()); });
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
/// Receives the module after each stage that a pass ends.
using ModuleSink = llvm::function_ref<void(llvm::StringRef stage, mlir::ModuleOp module)>;

/// Passes the module to the sink after each pass that ends a stage, until the sink throws. The exception is stored,
/// since it must not pass MLIR's frames, which are built without exceptions and would be removed without their
/// destructors.
struct StageInstrumentation : mlir::PassInstrumentation {
  StageInstrumentation(const Backend &backend, ModuleSink sink, std::exception_ptr &thrown)
      : backend(backend), sink(sink), thrown(thrown) {}
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    if (thrown)
      return;
    const auto stages = backend.stages();
    const auto *const stage = llvm::find_if(
        stages, [&](const Stage &candidate) { return candidate.after && pass->getArgument() == candidate.after; });
    auto func = llvm::dyn_cast<FuncOp>(op);
    if (stage == stages.end() || (func && func.isDeclaration()))
      return;
    const auto module = llvm::dyn_cast<mlir::ModuleOp>(op);
    try {
      sink(stage->name, module ? module : op->getParentOfType<mlir::ModuleOp>());
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  const Backend &backend;
  const ModuleSink sink;
  std::exception_ptr &thrown;
};
} // namespace

namespace {
/// Records the name of the pass that is running.
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

/// Throws the error of a failed compilation: the collected diagnostics, and for an internal error the command that
/// repeats it. `reason` is the message of a crash or of LLVM, if any, and `pass` the pass in which it occurred.
[[noreturn]] static void throwFailure(const ErrorCollector &errors, const std::string &reason, llvm::StringRef pass,
                                      mlir::PassManager &pm, mlir::ModuleOp original, const Backend &backend) {
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
      llvm::StringRef(line).starts_with("run")) // the passes succeeded, so the command continues with LLVM's tools
    text += " | mlir-translate-22 --mlir-to-llvmir | " + backend.emitCommand();
  throw Error("internal error while compiling '" + kernelName(original) + "':\n" + text, Fault::internal);
}

/// Whether KILN_VERIFY requests MLIR's verifier after each pass. It always runs if stages are shown.
static bool asksToVerify() {
  const char *const asked = std::getenv("KILN_VERIFY");
  return asked && *asked;
}

/// Runs the passes on a copy of `module`, and then `emit`, if it is set, on the LLVM module. `seen`, if it is set,
/// receives the module after each stage. With `addsLines`, LLVM's instructions have source lines.
static void runPipeline(mlir::ModuleOp module, const Backend &backend, ModuleSink seen,
                        llvm::function_ref<void(llvm::Module &)> emit, bool addsLines = false) {
  mlir::MLIRContext *const context = module.getContext();
  // The passes change a copy, because after a crash it may not even be destroyed. The caller's module is unchanged.
  mlir::OwningOpRef<mlir::ModuleOp> work(module.clone());
  ErrorCollector errors(context);
  mlir::PassManager pm(context, mlir::ModuleOp::getOperationName());
  pm.enableVerifier(seen || asksToVerify());
  (void)mlir::applyPassManagerCLOptions(pm); // flags of programs that registered those of MLIR
  mlir::applyDefaultTimingPassManagerCLOptions(pm);
  llvm::StringRef pass;
  pm.addInstrumentation(std::make_unique<CurrentPass>(pass));
  std::exception_ptr thrown;
  if (seen)
    pm.addInstrumentation(std::make_unique<StageInstrumentation>(backend, seen, thrown));
  buildPipeline(pm, backend);
  if (addsLines)
    pm.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass({mlir::LLVM::DIEmissionKind::DebugDirectivesOnly}));
  std::string reason;
  bool failed = false;
  try {
    withFatalErrorsThrown([&] {
      failed = mlir::failed(pm.run(*work));
      if (failed || thrown || !emit)
        return;
      llvm::LLVMContext llvmContext;
      llvmContext.setDiscardValueNames(true); // keeping names takes an eighth of the time
      const std::unique_ptr<llvm::Module> llvmModule =
          mlir::translateModuleToLLVMIR(*work, llvmContext, kernelName(module));
      failed = !llvmModule;
      if (!failed)
        emit(*llvmModule);
    });
  } catch (const BackendError &error) {
    failed = true;
    reason = error.what();
    (void)work.release();
  } catch (...) { // out of memory, or an exception of a stage's receiver
    (void)work.release();
    throw;
  }
  if (thrown)
    std::rethrow_exception(thrown);
  if (failed)
    throwFailure(errors, reason, pass, pm, module, backend);
}

std::vector<char> compile(mlir::ModuleOp module, const Backend &backend, const StageSink &sink,
                          Explanation *explanation) {
  std::vector<char> code;
  const auto emit = [&](llvm::Module &llvmModule) { code = backend.emit(llvmModule, sink); };
  if (!sink && !explanation) {
    runPipeline(module, backend, nullptr, emit);
    return code;
  }
  const auto see = [&](llvm::StringRef stage, mlir::ModuleOp reached) {
    if (explanation)
      backend.explain(stage, reached, *explanation);
    if (sink)
      sink(stage.str(), stageText(reached, withoutLocations()));
  };
  see("tile", module);
  runPipeline(module, backend, see, emit);
  return code;
}

std::string explain(mlir::ModuleOp module, const Backend &backend) {
  Explanation explanation;
  const auto tell = [&](llvm::StringRef stage, mlir::ModuleOp reached) {
    backend.explain(stage, reached, explanation);
  };
  tell("tile", module);
  runPipeline(module, backend, tell, nullptr);
  return explanation.text();
}

CompilationRecord record(mlir::ModuleOp module, const Backend &backend) {
  CompilationRecord record;
  const auto see = [&](llvm::StringRef stage, mlir::ModuleOp reached) {
    backend.explain(stage, reached, record.explanation);
    record.stages.push_back({stage.str(), sourced(reached, withoutLocations())});
  };
  see("tile", module);
  const auto emit = [&](llvm::Module &llvmModule) {
    backend.emit(llvmModule, [&](const std::string &stage, const std::string &text) {
      if (stage != "obj" && stage != "cubin") // these are bytes
        record.stages.push_back({stage, stage == "llvm" ? sourcedIr(text) : sourcedListing(text)});
    });
  };
  runPipeline(module, backend, see, emit, /*addsLines=*/!backend.tellsLines());
  return record;
}

} // namespace kiln::lowering

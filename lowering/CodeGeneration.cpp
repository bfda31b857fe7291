// Runs LLVM's pass managers, and turns its diagnostics into errors.

#include "lowering/CodeGeneration.h"

#include "lowering/Crashes.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/LoopRotationUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace kiln::lowering {

static void noteError(const llvm::DiagnosticInfo *info, void *errors) {
  if (info->getSeverity() != llvm::DS_Error)
    return;
  llvm::raw_string_ostream stream(*static_cast<std::string *>(errors));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
  stream << "\n";
}

LlvmErrors::LlvmErrors(llvm::LLVMContext &context) : context(context) {
  context.setDiagnosticHandlerCallBack(noteError, &text);
}

LlvmErrors::~LlvmErrors() { context.setDiagnosticHandlerCallBack(nullptr); }

void LlvmErrors::check() const {
  if (!text.empty())
    throw BackendError(text);
}

std::unique_ptr<llvm::TargetMachine>
MachinePool::take(const std::string &kind, llvm::function_ref<std::unique_ptr<llvm::TargetMachine>()> create) {
  {
    const std::lock_guard lock(mutex);
    if (auto &machines = atRest[kind]; !machines.empty()) {
      std::unique_ptr<llvm::TargetMachine> machine = std::move(machines.back());
      machines.pop_back();
      return machine;
    }
  }
  return create();
}

void MachinePool::give(const std::string &kind, std::unique_ptr<llvm::TargetMachine> machine) {
  const std::lock_guard lock(mutex);
  atRest[kind].push_back(std::move(machine));
}

namespace {
/// LLVM's loop rotation without scalar evolution, of which nothing is known yet, and without the dominator tree. After
/// each rotation, LLVM's own pass makes the first forget the outermost loop, and updates the second in time linear in
/// the function. Both are quadratic in a kernel with many loops.
struct RotateLoops : llvm::PassInfoMixin<RotateLoops> {
  static constexpr unsigned largestHeader = 16; // LLVM's own

  static llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    auto &loops = analyses.getResult<llvm::LoopAnalysis>(function);
    auto &dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    auto &assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
    const auto &target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    const auto &library = analyses.getResult<llvm::TargetLibraryAnalysis>(function);
    const llvm::SimplifyQuery query(function.getDataLayout(), &library, /*DT=*/nullptr, &assumptions);
    bool changed = false;
    for (llvm::Loop *const loop : loops) {
      changed |= llvm::simplifyLoop(loop, &dominators, &loops, nullptr, &assumptions, nullptr, /*PreserveLCSSA=*/false);
      changed |= llvm::formLCSSARecursively(*loop, dominators, &loops, nullptr);
    }
    const auto order = loops.getLoopsInPreorder();
    for (llvm::Loop *const loop : llvm::reverse(order))
      changed |= llvm::LoopRotation(loop, &loops, &target, &assumptions, /*DT=*/nullptr, nullptr, nullptr, query,
                                    /*RotationOnly=*/false, largestHeader, /*IsUtilMode=*/false);
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};
} // namespace

void runPasses(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef pipeline,
               const llvm::TargetLibraryInfoImpl *library) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  if (library)
    functions.registerPass([library] { return llvm::TargetLibraryAnalysis(*library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::FunctionPassManager &passes, auto) {
    if (name != "rotate-loops")
      return false;
    passes.addPass(RotateLoops());
    return true;
  });
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
}

namespace {
/// The passes of code generation, except those whose names are in `without`.
class PassesWithout : public llvm::legacy::PassManager {
public:
  explicit PassesWithout(llvm::ArrayRef<llvm::StringRef> without) : without(without) {}
  void add(llvm::Pass *pass) override {
    const llvm::PassInfo *const info = llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    if (info && llvm::is_contained(without, info->getPassArgument()))
      delete pass; // a pass manager owns its passes
    else
      llvm::legacy::PassManager::add(pass);
  }

private:
  const llvm::ArrayRef<llvm::StringRef> without;
};
} // namespace

llvm::SmallVector<char, 0> generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                                    const llvm::TargetLibraryInfoImpl *library,
                                    llvm::ArrayRef<llvm::StringRef> without) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  PassesWithout passes(without);
  if (library)
    passes.add(new llvm::TargetLibraryInfoWrapperPass(*library));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true))
    throw BackendError("the backend for " + machine.getTargetTriple().str() + " cannot write this kind of file");
  passes.run(module);
  return bytes;
}

std::string textOf(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

} // namespace kiln::lowering

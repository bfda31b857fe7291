// Pass managers, and LLVM's diagnostics as one of our errors.

#include "lowering/CodeGeneration.h"

#include "lowering/FatalErrors.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"

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
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
}

llvm::SmallVector<char, 0> generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                                    const llvm::TargetLibraryInfoImpl *library) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
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

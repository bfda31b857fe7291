// kiln-opt: runs any of Kiln's passes, MLIR's own, and the whole pipeline of a target on a .mlir file.
//
//     kiln-opt add.mlir --kiln="target=x86-64-v3 until=loops" --mlir-print-ir-after-all
//     kiln-opt --run-reproducer crash.mlir
//
// It is mlir-opt with the tile dialect and Kiln's passes: every flag of mlir-opt works. There are three differences.
// Input is checked before MLIR's parser reads it. Passes run on one thread. The exit status is 2 for an error in flags
// and modules, 3 for one of files and memory, 4 for LLVM's fatal errors.

#include "dialect/dsl/Types.h"
#include "lowering/Driver.h"
#include "runtime/Files.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "tools/files/Files.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

namespace kiln::tools {

/// The exit status after a reported user's error.
static constexpr int userStatus = 2;

/// LLVM's fatal errors: a full disk, a flag that MLIR parses late, and internal errors.
static void endFatally(void *, const char *reason, bool) {
  const std::string_view text = reason;
  say("kiln-opt: error: " + std::string(text) + "\n");
  _exit(text.starts_with("IO failure") ? 3 : text.find("command-line") != text.npos ? userStatus : 4);
}

static void endWithoutMemory(void *, const char *, bool) {
  say("kiln-opt: error: out of host memory\n");
  _exit(3);
}

/// LLVM prints --help and --version and exits with 0; after a failed write the status is 3. For unknown flags it prints
/// an error and exits with 1.
static void endWithResult(llvm::raw_fd_ostream &output, int status) {
  if (status == 1)
    _exit(userStatus);
  output.flush();
  if (output.has_error()) {
    output.clear_error();
    _exit(3);
  }
}

static mlir::DialectRegistry registerAll() {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  lowering::registerDialects(registry);
  mlir::registerAllPasses();
  lowering::registerPasses();
  lowering::registerPipeline();
  return registry;
}

/// mlir-opt's configuration from the flags. Errors in passes' options are reported as errors of the command line. There
/// are no threads, which one kernel does not need.
static mlir::MlirOptMainConfig configuration(const mlir::MlirOptMainConfig &flags) {
  mlir::MlirOptMainConfig config = flags;
  config.setPassPipelineSetupFn([&flags](mlir::PassManager &pm) {
    pm.getContext()->disableMultithreading();
    const mlir::ScopedDiagnosticHandler handler(pm.getContext(), [](mlir::Diagnostic &diagnostic) {
      const std::string text = diagnostic.str();
      llvm::StringRef error = llvm::StringRef(text).trim();
      error.consume_front("<Pass-Options-Parser>: ");
      if (!error.empty()) // empty: llvm::cl has reported it
        say(("kiln-opt: error: " + error + "\n").str());
    });
    return flags.setupPassPipeline(pm);
  });
  return config;
}

static int run(int argc, char **argv) {
  llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("<input file>"), llvm::cl::init("-"));
  llvm::cl::opt<std::string> output("o", llvm::cl::desc("Output filename"), llvm::cl::value_desc("filename"),
                                    llvm::cl::init("-"));
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << versionText("kiln-opt") << "\n"; });
  mlir::DialectRegistry registry = registerAll();
  const std::string help = mlir::registerCLIOptions("Kiln's compiler, pass by pass", registry);
  if (!llvm::cl::ParseCommandLineOptions(argc, argv, help, &llvm::errs()))
    return userStatus;
  const mlir::MlirOptMainConfig flags = mlir::MlirOptMainConfig::createFromCLOptions();
  if (flags.shouldListPasses()) {
    mlir::printRegisteredPasses();
    return 0;
  }
  if (flags.shouldShowDialects()) {
    for (const llvm::StringRef dialect : registry.getDialectNames())
      show((dialect + "\n").str());
    writeResult("");
    return 0;
  }
  const std::string text = readInput(input, lowering::maxModuleBytes);
  lowering::checkModuleText(text, input);
  std::string result;
  llvm::raw_string_ostream stream(result);
  if (mlir::failed(
          mlir::MlirOptMain(stream, llvm::MemoryBuffer::getMemBuffer(text, input), registry, configuration(flags))))
    return userStatus;
  writeOutput(output, result);
  return 0;
}

} // namespace kiln::tools

int main(int argc, char **argv) {
  // Before mlir-opt's handler, which would exit with another status after a broken pipe.
  const llvm::InitLLVM signals(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  return kiln::runProgram("kiln-opt", [=] {
    std::signal(SIGXFSZ, SIG_IGN); // it would count as a crash
    llvm::outs();                  // created before the handler is registered, so that it outlives it
    ::on_exit([](int status, void *) { kiln::tools::endWithResult(llvm::outs(), status); }, nullptr);
    llvm::install_fatal_error_handler(kiln::tools::endFatally);
    llvm::install_bad_alloc_error_handler(kiln::tools::endWithoutMemory);
    return kiln::tools::run(argc, argv);
  });
}

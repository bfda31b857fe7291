// kiln-opt: runs any of our passes, MLIR's own, and the pipelines `kiln-cpu` and `kiln-cpu-generic` on a .mlir file.
//
//     kiln-opt add.mlir --kiln-cpu="cpu=x86-64-v3 until=loops" --mlir-print-ir-after-all
//     kiln-opt --run-reproducer crash.mlir
//
// It is mlir-opt with the tile dialect and Kiln's passes: every flag of mlir-opt works.

#include "lowering/Passes.h"
#include "lowering/Pipelines.h"
#include "runtime/Streams.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

/// What LLVM cannot go on after; the one such error that an input cannot cause is a file that takes no more.
static void endFatally(void *, const char *reason, bool) {
  const std::string_view text = reason;
  kiln::say("kiln-opt: error: " + std::string(text) + "\n");
  _exit(text.starts_with("IO failure") ? 3 : 4);
}

int main(int argc, char **argv) {
  kiln::openStandardStreams();
  // Before mlir-opt's own, which would end on a broken pipe with a status of its own.
  const llvm::InitLLVM signals(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  llvm::install_fatal_error_handler(endFatally);
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  kiln::lowering::registerDialects(registry);
  mlir::registerAllPasses();
  kiln::lowering::registerKilnPasses();
  kiln::lowering::registerPipelines();
  const mlir::LogicalResult result = mlir::MlirOptMain(argc, argv, "Kiln's compiler, pass by pass\n", registry);
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    kiln::say("kiln-opt: error: cannot write to standard output: " + llvm::outs().error().message() + "\n");
    return 3;
  }
  return succeeded(result) ? 0 : 2;
}

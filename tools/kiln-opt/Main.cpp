// kiln-opt: runs any of our passes, MLIR's own, and the pipelines `kiln-cpu` and `kiln-cpu-generic` on a .mlir file.
//
//     kiln-opt add.mlir --kiln-cpu="cpu=x86-64-v3 until=loops" --mlir-print-ir-after-all
//     kiln-opt --run-reproducer crash.mlir
//
// It is mlir-opt with the tile dialect and Kiln's passes: every flag of mlir-opt works.

#include "lowering/Passes.h"
#include "lowering/Pipelines.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  kiln::lowering::registerDialects(registry);
  mlir::registerAllPasses();
  kiln::lowering::registerKilnPasses();
  kiln::lowering::registerPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Kiln's compiler, pass by pass\n", registry));
}

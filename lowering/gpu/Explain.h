// Describes the GPU code of a kernel for `--explain`.

#pragma once

#include "lowering/Explanation.h"

#include "mlir/IR/BuiltinOps.h"

namespace kiln::lowering::gpu {

/// After the stage `layouts`: the kernel's threads and registers; of each operation on tiles its layout, and how
/// accesses, products, conversions and reductions are done.
void explainLayouts(mlir::ModuleOp module, Explanation &explanation);

/// After the stage `exchanges`: shared memory, what is written to it and read from it, and each barrier.
void explainExchanges(mlir::ModuleOp module, Explanation &explanation);

} // namespace kiln::lowering::gpu

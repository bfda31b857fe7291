// Describes the CPU code of a kernel for `--explain`.

#pragma once

#include "lowering/Explanation.h"

#include "mlir/IR/BuiltinOps.h"

namespace kiln::lowering::cpu {

/// After the stage `loops`: the kernel's vectors and scratch memory; of each loop its iterations, vectors, accesses and
/// masks; and where there are two versions of the code, one of them without masks.
void explainLoops(mlir::ModuleOp module, Explanation &explanation);

} // namespace kiln::lowering::cpu

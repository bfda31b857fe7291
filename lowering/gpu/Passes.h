// Declarations of the GPU's passes in lowering/Passes.td.

#pragma once

#include "dialect/simt/SimtDialect.h"
#include "lowering/PassOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace kiln::lowering::gpu {

#define GEN_PASS_DECL
#include "lowering/gpu/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/gpu/Passes.h.inc"

} // namespace kiln::lowering::gpu

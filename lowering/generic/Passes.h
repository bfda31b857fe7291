// Declarations of the passes of the reference backend in lowering/Passes.td.

#pragma once

#include "lowering/PassOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace kiln::lowering::generic {

#define GEN_PASS_DECL
#include "lowering/generic/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/generic/Passes.h.inc"

} // namespace kiln::lowering::generic

// Declarations of the CPU's passes in lowering/Passes.td.

#pragma once

#include "lowering/PassOptions.h"
#include "lowering/cpu/CpuDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace kiln::lowering::cpu {

#define GEN_PASS_DECL
#include "lowering/cpu/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/cpu/Passes.h.inc"

} // namespace kiln::lowering::cpu

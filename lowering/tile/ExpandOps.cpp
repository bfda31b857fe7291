// Spells total integer operations, casts, random numbers and narrow-float arithmetic in arith.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kiln::lowering {

#define GEN_PASS_DEF_EXPANDOPS
#include "lowering/Passes.h.inc"

namespace {
struct ExpandOps : impl::ExpandOpsBase<ExpandOps> {
  using ExpandOpsBase::ExpandOpsBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

// Spells transcendental functions and bf16 conversions in arithmetic.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kiln::lowering {

#define GEN_PASS_DEF_LOWERMATH
#include "lowering/Passes.h.inc"

namespace {
struct LowerMath : impl::LowerMathBase<LowerMath> {
  using LowerMathBase::LowerMathBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

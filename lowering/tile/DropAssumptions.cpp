// Erases the promises of a kernel after the last pass that reads them.
//
//     tile.assume %0
//     // is erased

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_DROPASSUMPTIONS
#include "lowering/Passes.h.inc"

namespace {
struct DropAssumptions : impl::DropAssumptionsBase<DropAssumptions> {
  using DropAssumptionsBase::DropAssumptionsBase;

  void runOnOperation() override {
    getOperation().walk([](tile::AssumeOp op) { op.erase(); });
  }
};
} // namespace

} // namespace kiln::lowering

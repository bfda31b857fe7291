// Decides which carried tiles can be updated in place.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"


namespace kiln::lowering {

#define GEN_PASS_DEF_PINCARRIEDTILES
#include "lowering/Passes.h.inc"

namespace {
struct PinCarriedTiles : impl::PinCarriedTilesBase<PinCarriedTiles> {
  using PinCarriedTilesBase::PinCarriedTilesBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

// Marks the loads that may be read again from memory where they are used.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"


namespace kiln::lowering {

#define GEN_PASS_DEF_FORWARDLOADS
#include "lowering/Passes.h.inc"

namespace {
struct ForwardLoads : impl::ForwardLoadsBase<ForwardLoads> {
  using ForwardLoadsBase::ForwardLoadsBase;
  void runOnOperation() override {}
};
} // namespace

} // namespace kiln::lowering

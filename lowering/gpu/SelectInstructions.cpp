// Which instructions compute a product: the tensor core's where it has them for the operands and the sums fill its
// fragments, else outer products in registers, exact as the language's `ieee` is.

#include "lowering/gpu/Passes.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Fragments.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_SELECTINSTRUCTIONS
#include "lowering/gpu/Passes.h.inc"

/// Whether mma.sync multiplies such operands, as exactly as the product asks for.
static bool hasInstruction(tile::DotOp op) {
  const Type element = cast<RankedTensorType>(op.getA().getType()).getElementType();
  return tile::isNarrowFloat(element) || element.isInteger(8) ||
         (element.isF32() && op.getPrecision() == tile::Precision::TF32);
}

static void choose(tile::DotOp op, unsigned warps) {
  const auto a = cast<RankedTensorType>(op.getA().getType()), acc = cast<RankedTensorType>(op.getType());
  const int64_t M = acc.getDimSize(0), N = acc.getDimSize(1), K = a.getDimSize(1);
  const auto set = [&](const simt::TileLayout &layout) {
    op->setAttr("simt.layout", simt::LayoutAttr::get(op.getContext(), layout));
  };
  if (hasInstruction(op)) {
    const auto mma = simt::mmaShapeFor(a.getElementTypeBitWidth(), K);
    const auto split = simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/false);
    // The tensor core has no m16n8k8 for narrow operands that SpellPtx spells.
    if (mma && split && mma->k == 256 / mma->bits) {
      op->setAttr("simt.mma", UnitAttr::get(op.getContext()));
      return set(simt::mmaAcc(M, N, *split, warps));
    }
  }
  set(simt::fmaAcc(M, N, warps));
}

namespace {
struct SelectInstructions : impl::SelectInstructionsBase<SelectInstructions> {
  using SelectInstructionsBase::SelectInstructionsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func->hasAttr("tile.kernel"))
      func.walk([&](tile::DotOp op) { choose(op, static_cast<unsigned>(warpsOf(func))); });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

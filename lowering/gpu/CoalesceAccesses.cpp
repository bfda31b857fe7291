// A layout for each access of memory: neighbouring threads at neighbouring addresses, and in a thread as many elements
// in a row as one instruction moves.
//
// What an instruction moves is aligned when the view's first element is (`tile.align`), the strides are (static, or
// `tile.strides_by_16`) and the tile's offset along the fastest dimension is. It lies inside or outside the view as a
// whole when what it moves divides the view's extent in that dimension (static, or `tile.extent_by_16`), too.

#include "lowering/gpu/Passes.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Blocked.h"
#include "lowering/Diagnostics.h"
#include "lowering/analysis/Divisibility.h"
#include "lowering/analysis/TileUses.h"

#include <numeric>

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_COALESCEACCESSES
#include "lowering/gpu/Passes.h.inc"

/// A fact about the kernel's argument that a view is.
template <class AttrTy> static AttrTy factOf(Value view, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(view);
  auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return func ? func.getArgAttrOfType<AttrTy>(argument.getArgNumber(), name) : AttrTy();
}

/// What divides the address of the tile, in elements, all strides that are not known, and the view's extent along its
/// fastest dimension, in which neighbours lie. `offsets` are those of the last dimensions.
static int64_t divisibilityOf(Value view, unsigned fastest, ValueRange offsets, int64_t bytes) {
  const auto type = cast<MemRefType>(view.getType());
  const auto alignment = factOf<IntegerAttr>(view, "tile.align");
  int64_t divisor = std::max<int64_t>(1, (alignment ? alignment.getInt() : 1) / bytes);
  const auto strides = type.getStridesAndOffset().first;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (ShapedType::isDynamic(strides[dim]) && type.getDimSize(dim) != 1) {
      const bool isKnown = dim + 1 < type.getRank() && factOf<UnitAttr>(view, "tile.strides_by_16");
      divisor = std::gcd(divisor, isKnown ? 16 : 1);
    }
  int64_t extent = type.getDimSize(fastest);
  if (ShapedType::isDynamic(extent))
    extent = fastest + 1 == type.getRank() && factOf<UnitAttr>(view, "tile.extent_by_16") ? 16 : 1;
  const int64_t first = type.getRank() - static_cast<int64_t>(offsets.size());
  if (fastest < first) // rows that are gathered lie anywhere
    return 1;
  return std::gcd(std::gcd(divisor, extent), divisorOf(offsets[fastest - first]));
}

static void choose(Operation *op, RankedTensorType tile, Value view, ValueRange offsets, bool isSingle,
                   unsigned warps) {
  Builder builder(op->getContext());
  const unsigned bits = std::max(8u, tile.getElementTypeBitWidth());
  SmallVector<int64_t> strides(cast<MemRefType>(view.getType()).getStridesAndOffset().first);
  for (int64_t &stride : strides)
    if (ShapedType::isDynamic(stride))
      stride = simt::unknownStride;
  simt::Access access{tile.getShape(), strides, 1, bits};
  if (!isSingle)
    access.divisibility = divisibilityOf(view, simt::orderOf(access).front(), offsets, bits / 8);
  op->setAttr("simt.layout", simt::LayoutAttr::get(op->getContext(), simt::coalesced(access, warps)));
  op->setAttr("simt.vector", builder.getI64IntegerAttr(simt::vectorWidth(access, warps)));
}

namespace {
struct CoalesceAccesses : impl::CoalesceAccessesBase<CoalesceAccesses> {
  using CoalesceAccessesBase::CoalesceAccessesBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    const int64_t warps = warpsOf(func);
    if (!llvm::isPowerOf2_64(warps) || warps > mostWarps) {
      emitUserError(func) << "expected 'warps' of kernel '" << func.getName() << "' to be a power of two up to "
                          << mostWarps << ", but got " << warps;
      return signalPassFailure();
    }
    const auto add = [&](auto op, Value tile, bool isSingle = false) {
      choose(op, cast<RankedTensorType>(tile.getType()), op.getView(), op.getOffsets(), isSingle, warps);
    };
    func.walk([&](Operation *op) {
      if (auto load = dyn_cast<tile::LoadOp>(op))
        add(load, load.getResult());
      else if (auto gather = dyn_cast<tile::GatherOp>(op))
        add(gather, gather.getResult());
      else if (auto store = dyn_cast<tile::StoreOp>(op))
        add(store, store.getValue());
      else if (auto scatter = dyn_cast<tile::ScatterOp>(op))
        add(scatter, scatter.getValue());
      else if (auto atomic = dyn_cast<tile::AtomicAddOp>(op))
        add(atomic, atomic.getValue(), true);
    });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// A layout for each access of memory: neighbouring threads at neighbouring addresses, and in a thread as many elements
// in a row as one instruction moves.
//
// What an instruction moves is aligned when the view's first element is (`tile.align`), the strides are (static, or
// `tile.strides_by_16`) and the tile's offset along the fastest dimension is. It lies inside or outside the view as a
// whole when what it moves divides the view's extent in that dimension (static, or `tile.extent_by_16`), too.

#include "lowering/gpu/Passes.h"
#include "lowering/gpu/Reasons.h"
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

static constexpr const char *extentLimit = "the extent";

namespace {

/// Something that divides the address of a tile or the place of the view's end, in elements, if it is known.
struct Limit {
  int64_t divisor;
  const char *what;
  std::optional<unsigned> dim;
};

/// An access of memory: which tile of which view. `offsets` are those of the view's last dimensions.
struct GlobalAccess {
  Value view;
  ValueRange offsets;
  RankedTensorType tile;
  bool isSingle = false; // each element by itself

  static std::optional<GlobalAccess> of(Operation *op);
  MemRefType viewType() const { return cast<MemRefType>(view.getType()); }
  int64_t bytes() const { return std::max(8u, tile.getElementTypeBitWidth()) / 8; }
  /// `fastest` is the dimension in which neighbours lie.
  SmallVector<Limit> limits(unsigned fastest) const;
  /// In the library's words, with storage for the strides.
  simt::Access inMemory(SmallVector<int64_t> &strides) const;
};

std::optional<GlobalAccess> GlobalAccess::of(Operation *op) {
  const auto make = [](auto access, Value tile, bool isSingle = false) {
    return GlobalAccess{access.getView(), access.getOffsets(), cast<RankedTensorType>(tile.getType()), isSingle};
  };
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return make(load, load.getResult());
  if (auto gather = dyn_cast<tile::GatherOp>(op))
    return make(gather, gather.getResult());
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return make(store, store.getValue());
  if (auto scatter = dyn_cast<tile::ScatterOp>(op))
    return make(scatter, scatter.getValue());
  if (auto atomic = dyn_cast<tile::AtomicAddOp>(op))
    return make(atomic, atomic.getValue(), true);
  return std::nullopt;
}

SmallVector<Limit> GlobalAccess::limits(unsigned fastest) const {
  const MemRefType type = viewType();
  const auto alignment = factOf<IntegerAttr>(view, "tile.align");
  SmallVector<Limit> limits = {
      {std::max<int64_t>(1, (alignment ? alignment.getInt() : 1) / bytes()), "the view's alignment", std::nullopt}};
  const auto strides = type.getStridesAndOffset().first;
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    if (ShapedType::isDynamic(strides[dim]) && type.getDimSize(dim) != 1) {
      const bool isKnown = dim + 1 < type.getRank() && factOf<UnitAttr>(view, "tile.strides_by_16");
      limits.push_back({isKnown ? 16 : 1, "the stride", dim});
    }
  int64_t extent = type.getDimSize(fastest);
  if (ShapedType::isDynamic(extent))
    extent = fastest + 1 == type.getRank() && factOf<UnitAttr>(view, "tile.extent_by_16") ? 16 : 1;
  limits.push_back({extent, extentLimit, fastest});
  const int64_t first = type.getRank() - static_cast<int64_t>(offsets.size());
  if (fastest < first)
    limits.push_back({1, "the rows, which lie anywhere,", fastest});
  else
    limits.push_back({divisorOf(offsets[fastest - first]), "the tile's offset", fastest});
  return limits;
}

simt::Access GlobalAccess::inMemory(SmallVector<int64_t> &strides) const {
  strides = viewType().getStridesAndOffset().first;
  for (int64_t &stride : strides)
    if (ShapedType::isDynamic(stride))
      stride = simt::unknownStride;
  simt::Access access{tile.getShape(), strides, 1, static_cast<unsigned>(8 * bytes())};
  if (isSingle)
    return access;
  access.divisibility = 0;
  for (const Limit &limit : limits(simt::orderOf(access).front()))
    access.divisibility = std::gcd(access.divisibility, limit.divisor);
  return access;
}

} // namespace

static void choose(Operation *op, const GlobalAccess &global, unsigned warps) {
  Builder builder(op->getContext());
  SmallVector<int64_t> strides;
  const simt::Access access = global.inMemory(strides);
  op->setAttr("simt.layout", simt::LayoutAttr::get(op->getContext(), simt::coalesced(access, warps)));
  op->setAttr("simt.vector", builder.getI64IntegerAttr(simt::vectorWidth(access, warps)));
}

std::string whyNarrow(Operation *op) {
  const std::optional<GlobalAccess> global = GlobalAccess::of(op);
  if (!global)
    return "";
  SmallVector<int64_t> strides;
  const simt::Access access = global->inMemory(strides);
  const int64_t vector = simt::vectorWidth(access, static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>())));
  if (vector * global->bytes() >= 16)
    return "";
  if (global->isSingle)
    return "atomics are done one by one";
  const unsigned fastest = simt::orderOf(access).front();
  if (strides[fastest] != 1)
    return "elements do not lie together";
  std::string reasons;
  for (const Limit &limit : global->limits(fastest))
    if (limit.divisor % (16 / global->bytes()) != 0)
      reasons += (reasons.empty() ? "" : " and ") + std::string(limit.what) +
                 (limit.dim ? " of dimension " + std::to_string(*limit.dim) : "");
  return reasons.empty() ? "there is no more for each thread"
                         : reasons + " would have to be known as multiples of " + std::to_string(16 / global->bytes());
}

CopyWidth copyWidthOf(tile::LoadOp load) {
  const GlobalAccess global = *GlobalAccess::of(load);
  SmallVector<int64_t> strides;
  const simt::Access access = global.inMemory(strides);
  CopyWidth width{.fastest = simt::orderOf(access).front()};
  if (strides[width.fastest] != 1)
    return width;
  const int64_t most =
      std::min<int64_t>(16 / global.bytes(), simt::Extent::of(global.tile.getDimSize(width.fastest)).core());
  width.elements = most;
  int64_t extent = 1;
  for (const Limit &limit : global.limits(width.fastest))
    if (limit.what == extentLimit)
      extent = limit.divisor;
    else
      width.elements = std::gcd(width.elements, limit.divisor);
  width.whole = extent % width.elements == 0;
  return width;
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
    func.walk([&](Operation *op) {
      if (const std::optional<GlobalAccess> access = GlobalAccess::of(op))
        choose(op, *access, static_cast<unsigned>(warps));
    });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

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
#include "lowering/Abi.h"
#include "lowering/Diagnostics.h"
#include "lowering/analysis/Divisibility.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_COALESCEACCESSES
#include "lowering/gpu/Passes.h.inc"

static constexpr const char *extentLimit = "the extent";

namespace {

/// Something that divides the address of a tile or the place of the view's end, in elements, as far as it is known.
struct Limit {
  int64_t divisor;
  const char *what;
  std::optional<unsigned> dim;
  bool isExact = false; // `divisor` is the number itself
};

/// An access of memory, and what is known of where it goes.
struct GlobalAccess {
  mutable tile::AccessOp op;

  RankedTensorType tile() const { return op.getTile().getType(); }
  MemRefType viewType() const { return op.getView().getType(); }
  /// Whether elements are touched each by itself.
  bool isSingle() const { return !op.isLoad() && !op.isStore(); }
  int64_t bytes() const { return std::max(8u, tile().getElementTypeBitWidth()) / 8; }
  /// `fastest` is the dimension in which neighbours lie.
  SmallVector<Limit> limits(unsigned fastest) const;
  /// In the library's words, with storage for the strides.
  simt::Access inMemory(SmallVector<int64_t> &strides) const;
};

SmallVector<Limit> GlobalAccess::limits(unsigned fastest) const {
  const MemRefType type = viewType();
  const auto fact = dyn_cast_or_null<IntegerAttr>(factOf(op.getView(), "tile.align"));
  const int64_t alignment = fact ? fact.getInt() : tableOf(op.getView()).empty() ? 1 : abi::scratchAlignment;
  SmallVector<Limit> limits = {{std::max<int64_t>(1, alignment / bytes()), "the view's alignment", std::nullopt}};
  const auto strides = type.getStridesAndOffset().first;
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    if (ShapedType::isDynamic(strides[dim]) && type.getDimSize(dim) != 1) {
      const bool isKnown = dim + 1 < type.getRank() && factOf(op.getView(), "tile.strides_by_16");
      limits.push_back({isKnown ? 16 : 1, "the stride", dim});
    }
  const bool isStatic = !type.isDynamicDim(fastest);
  const bool isBy16 = fastest + 1 == type.getRank() && factOf(op.getView(), "tile.extent_by_16");
  limits.push_back({isStatic ? type.getDimSize(fastest) : isBy16 ? 16 : 1, extentLimit, fastest, isStatic});
  const Value begin = op.getSubscripts()[fastest];
  APInt offset;
  if (isa<RankedTensorType>(begin.getType()))
    limits.push_back({1, "the rows, which lie anywhere,", fastest});
  else if (matchPattern(begin, m_ConstantInt(&offset)))
    limits.push_back({offset.getSExtValue(), "the tile's offset", fastest, /*isExact=*/true});
  else
    limits.push_back({divisorOf(begin), "the tile's offset", fastest});
  return limits;
}

simt::Access GlobalAccess::inMemory(SmallVector<int64_t> &strides) const {
  strides = viewType().getStridesAndOffset().first;
  for (int64_t &stride : strides)
    if (ShapedType::isDynamic(stride))
      stride = simt::unknownStride;
  simt::Access access{tile().getShape(), strides, 1, static_cast<unsigned>(8 * bytes())};
  if (isSingle())
    return access;
  access.divisibility = 0;
  for (const Limit &limit : limits(simt::orderOf(access).front()))
    access.divisibility = std::gcd(access.divisibility, limit.divisor);
  return access;
}

} // namespace

static void choose(tile::AccessOp op, unsigned warps) {
  Builder builder(op->getContext());
  SmallVector<int64_t> strides;
  const simt::Access access = GlobalAccess{op}.inMemory(strides);
  op->setAttr("simt.layout", simt::LayoutAttr::get(op->getContext(), simt::coalesced(access, warps)));
  op->setAttr("simt.vector", builder.getI64IntegerAttr(simt::vectorWidth(access, warps)));
}

/// Which of the limits keep vectors of `wanted` elements from being aligned and whole: what is known to be no multiple,
/// and what may be one.
static std::string whyNoMultiples(ArrayRef<Limit> limits, int64_t wanted) {
  std::string known, unknown;
  int64_t count = 0;
  for (const Limit &limit : limits) {
    if (limit.divisor % wanted == 0)
      continue;
    const std::string name = limit.what + (limit.dim ? " of dimension " + std::to_string(*limit.dim) : std::string());
    if (limit.isExact)
      known += (known.empty() ? "" : ", and ") + name + " is " + std::to_string(limit.divisor) + ", no multiple of " +
               std::to_string(wanted);
    else
      unknown += (count++ ? " and " : "") + name;
  }
  if (count)
    unknown += std::string(" would have to be known as ") + (count > 1 ? "multiples" : "a multiple") + " of " +
               std::to_string(wanted);
  if (known.empty() && unknown.empty())
    return "there is no more for each thread";
  return known + (known.empty() || unknown.empty() ? "" : ", and ") + unknown;
}

std::string whyNarrow(tile::AccessOp op) {
  const GlobalAccess global{op};
  SmallVector<int64_t> strides;
  const simt::Access access = global.inMemory(strides);
  const int64_t vector = simt::vectorWidth(access, static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>())));
  if (vector * global.bytes() >= 16)
    return "";
  if (global.isSingle())
    return "atomics are done one by one";
  const unsigned fastest = simt::orderOf(access).front();
  if (strides[fastest] != 1)
    return "elements do not lie together";
  SmallVector<Limit> limits = global.limits(fastest);
  for (const auto [dim, size, stride] : llvm::enumerate(access.sizes, strides))
    if (dim != fastest && size > 1 && stride != simt::unknownStride)
      limits.push_back({stride, "the stride", static_cast<unsigned>(dim), /*isExact=*/true});
  limits.push_back({access.sizes[fastest], "the tile's extent", fastest, /*isExact=*/true});
  return whyNoMultiples(limits, 16 / global.bytes());
}

CopyWidth copyWidthOf(tile::LoadOp load) {
  const GlobalAccess global{cast<tile::AccessOp>(*load)};
  SmallVector<int64_t> strides;
  const simt::Access access = global.inMemory(strides);
  CopyWidth width{.fastest = simt::orderOf(access).front()};
  if (strides[width.fastest] != 1)
    return width;
  const int64_t most =
      std::min<int64_t>(16 / global.bytes(), simt::Extent::of(global.tile().getDimSize(width.fastest)).core());
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

bool isFewNumbers(Operation *op) {
  constexpr int64_t fewBits = 8 * 1024;
  auto load = dyn_cast<tile::LoadOp>(op);
  if (!load)
    return false;
  const RankedTensorType type = load.getType();
  return llvm::count_if(type.getShape(), [](int64_t size) { return size > 1; }) <= 1 &&
         type.getNumElements() * type.getElementTypeBitWidth() <= fewBits;
}

int64_t packetIn(const simt::TileLayout &layout, tile::LoadOp load) {
  const GlobalAccess global{cast<tile::AccessOp>(*load)};
  SmallVector<int64_t> strides;
  const simt::Access access = global.inMemory(strides);
  const unsigned fastest = simt::orderOf(access).front();
  if (strides[fastest] != 1)
    return 1;
  int64_t divisor = std::gcd(std::gcd(access.divisibility, access.sizes[fastest]), 16 / global.bytes());
  for (const auto [dim, stride] : llvm::enumerate(strides))
    if (dim != fastest && stride != simt::unknownStride)
      divisor = std::gcd(divisor, stride);
  int64_t run = 1; // of a thread's first values, along memory
  for (const simt::AxisBit &axis : layout.axisBits(fastest)) {
    if (axis.part != simt::Hw::reg || axis.index != axis.bit)
      break;
    run *= 2;
  }
  return std::gcd(divisor, run);
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
    func.walk([&](tile::AccessOp access) { choose(access, static_cast<unsigned>(warps)); });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

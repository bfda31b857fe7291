// Chooses a layout for each memory access: adjacent threads access adjacent addresses, and a thread has as many
// contiguous elements as one instruction moves.
//
// An instruction moves a vector. It is aligned if the following are: the view's first element (`tile.align`), the
// strides (static, or `tile.strides_by_16`), and the tile's offset along the contiguous dimension. A vector is entirely
// in or out of bounds if its size divides the view's extent in that dimension (static, or `tile.extent_by_16`), or if
// the whole tile is known to be in bounds (`tile.inside`). Otherwise the view may end within a vector. `simt.ragged`
// records this, and gpu-distribute moves that one vector element by element.
//
// If tiles of a shape are reduced along the contiguous dimension and have enough rows, each warp gets whole rows. It
// reduces them by shuffles, without waiting for other warps. Tiles of one shape with equal order in memory get one
// layout, that of the widest type: bf16 next to f32 moves 8 bytes at a time. Tiles that elementwise operations combine
// get one layout too, so that nothing is converted. An unaligned access of such a group, as in a stencil, keeps the
// group's layout, because element by element it would access each cache line several times.

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Blocked.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Abi.h"
#include "lowering/Diagnostics.h"
#include "lowering/analysis/Integers.h"
#include "lowering/analysis/Masks.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_COALESCEACCESSES
#include "lowering/gpu/Passes.h.inc"

static constexpr const char *extentLimit = "the extent", *strideLimit = "the stride";

namespace {

/// A known divisor of a tile's address or of the position of the view's end, in elements.
struct Limit {
  int64_t divisor;
  const char *what;
  std::optional<unsigned> dim;
  bool isExact = false; // `divisor` is the exact value
};

/// A memory access, and the known facts about its addresses.
struct GlobalAccess {
  mutable tile::AccessOp op;

  RankedTensorType tile() const { return op.getTile().getType(); }
  MemRefType viewType() const { return op.getView().getType(); }
  /// Whether elements are accessed one by one.
  bool isSingle() const { return op.isAtomic(); }
  /// The view's dimension for a dimension of the tile; none for dimensions of index tiles.
  std::optional<unsigned> axisOf(unsigned dim) const;
  /// Strides of the tile's dimensions; kDynamic if unknown. Gathered positions count as if they were consecutive in the
  /// last dimension of the view that they index.
  SmallVector<int64_t> strides() const;
  int64_t bytes() const { return std::max(8u, tile().getElementTypeBitWidth()) / 8; }
  /// `fastest` is the tile's contiguous dimension.
  SmallVector<Limit> limits(unsigned fastest) const;
  /// Whether the view may end within a vector of `vector` elements along `fastest`.
  bool isRagged(unsigned fastest, int64_t vector) const;
  /// In the form of the layout library, with storage for the strides.
  simt::Access inMemory(SmallVector<int64_t> &strides) const;
};

std::optional<unsigned> GlobalAccess::axisOf(unsigned dim) const {
  for (int64_t axis = 0; axis < viewType().getRank(); ++axis)
    if (!op.isIndexed(axis) && op.getBlockDim(axis) == dim)
      return static_cast<unsigned>(axis);
  return std::nullopt;
}

SmallVector<int64_t> GlobalAccess::strides() const {
  const auto byAxis = viewType().getStridesAndOffset().first;
  const int64_t indexRank = op.getIndexRank();
  SmallVector<int64_t> result(indexRank);
  int64_t indexStride = 1;
  for (const auto [axis, stride] : llvm::enumerate(byAxis))
    if (op.isIndexed(static_cast<int64_t>(axis)))
      indexStride = stride;
    else
      result.push_back(stride);
  for (int64_t dim = indexRank; dim-- > 0;) {
    result[dim] = indexStride;
    if (!ShapedType::isDynamic(indexStride))
      indexStride *= tile().getDimSize(dim);
  }
  return result;
}

SmallVector<Limit> GlobalAccess::limits(unsigned fastest) const {
  const MemRefType type = viewType();
  const auto fact = dyn_cast_or_null<IntegerAttr>(viewFact(op.getView(), "tile.align"));
  const int64_t alignment = fact ? fact.getInt() : tableOf(op.getView()).empty() ? 1 : abi::scratchAlignment;
  SmallVector<Limit> limits = {{std::max<int64_t>(1, alignment / bytes()), "the view's alignment", std::nullopt}};
  const auto strides = type.getStridesAndOffset().first;
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    if (ShapedType::isDynamic(strides[dim]) && type.getDimSize(dim) != 1) {
      const bool isKnown = dim + 1 < type.getRank() && viewFact(op.getView(), "tile.strides_by_16");
      limits.push_back({isKnown ? 16 : 1, strideLimit, dim});
    }
  if (const Value mask = op.getMaskIfAny())
    limits.push_back({constantAlong(mask, fastest), "the mask", fastest});
  const std::optional<unsigned> axis = axisOf(fastest);
  if (!axis) {
    limits.push_back({1, "the rows, at arbitrary addresses,", fastest});
    return limits;
  }
  const bool isStatic = !type.isDynamicDim(*axis);
  const bool isBy16 = *axis + 1 == type.getRank() && viewFact(op.getView(), "tile.extent_by_16");
  const auto inside = op->getAttrOfType<DenseI64ArrayAttr>("tile.inside");
  if (!inside || !llvm::is_contained(inside.asArrayRef(), *axis))
    limits.push_back({isStatic ? type.getDimSize(*axis) : isBy16 ? 16 : 1, extentLimit, axis, isStatic});
  const Value begin = op.getSubscripts()[*axis];
  APInt offset;
  if (matchPattern(begin, m_ConstantInt(&offset)))
    limits.push_back({offset.getSExtValue(), "the tile's offset", axis, /*isExact=*/true});
  else
    limits.push_back({divisorOf(begin), "the tile's offset", axis});
  return limits;
}

bool GlobalAccess::isRagged(unsigned fastest, int64_t vector) const {
  return llvm::any_of(limits(fastest),
                      [&](const Limit &limit) { return limit.what == extentLimit && limit.divisor % vector != 0; });
}

simt::Access GlobalAccess::inMemory(SmallVector<int64_t> &strides) const {
  strides = this->strides();
  for (int64_t &stride : strides)
    if (ShapedType::isDynamic(stride))
      stride = simt::unknownStride;
  simt::Access access{tile().getShape(), strides, 1, static_cast<unsigned>(8 * bytes())};
  if (isSingle())
    return access;
  access.divisibility = 0;
  for (const Limit &limit : limits(simt::orderOf(access).front()))
    if (limit.what != extentLimit)
      access.divisibility = std::gcd(access.divisibility, limit.divisor);
  return access;
}

} // namespace

int64_t getVector(tile::AccessOp op) {
  const auto vector = op->getAttrOfType<IntegerAttr>("simt.vector");
  return vector ? vector.getInt() : 1;
}

void setVector(tile::AccessOp op, int64_t vector) {
  Builder builder(op->getContext());
  const GlobalAccess global{op};
  SmallVector<int64_t> strides;
  const SmallVector<unsigned> order = simt::orderOf(global.inMemory(strides));
  op->setAttr("simt.vector", builder.getI64IntegerAttr(vector));
  if (vector > 1 && global.isRagged(order.front(), vector))
    op->setAttr("simt.ragged", builder.getUnitAttr());
  else
    op->removeAttr("simt.ragged");
}

/// The most values of a row per lane for which a warp holds whole rows.
static constexpr int64_t maxRowValues = 64;

namespace {
/// Choices common to all tiles of a shape, so that they combine without conversions.
class Shapes {
public:
  Shapes(func::FuncOp func, unsigned warps) : warps(warps) {
    func.walk([&](tile::AccessOp op) {
      SmallVector<int64_t> strides;
      const simt::Access access = GlobalAccess{op}.inMemory(strides);
      if (const int64_t width = simt::vectorWidth(access, warps); width * access.bits == 128) {
        int64_t &block = blocks.try_emplace(keyOf(access), width).first->second;
        block = std::min(block, width);
      }
    });
    func.walk([&](tile::ReduceOp reduce) { note(reduce, reduce.getSource(), reduce.getAxis()); });
    func.walk([&](tile::ScanOp scan) { note(scan, scan.getSources()[0], scan.getAxis()); });
    func.walk([&](tile::SortOp sort) { note(sort, sort.getSource(), sort.getAxis()); });
  }

  simt::TileLayout layoutOf(const simt::Access &access) const {
    const SmallVector<unsigned> order = simt::orderOf(access);
    const bool wholeRows = !order.empty() && wantsWholeRows(access, order.front());
    const int64_t block = blockOf(access);
    if (block == simt::vectorWidth(access, warps))
      return simt::coalesced(access, warps, wholeRows);
    SmallVector<int64_t> perThread(order.size(), 1);
    perThread[order.front()] = block;
    return simt::blocked(access.sizes, order, perThread, warps, wholeRows ? block * simt::numLanes : 0);
  }

private:
  /// Records an axis along which `op` reduces or scans a tile.
  void note(Operation *op, Value tile, int64_t along) {
    int depth = 1;
    for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop;
         loop = loop->getParentOfType<LoopLikeOpInterface>())
      ++depth;
    Axis &axis = axes[SmallVector<int64_t>(tile::shapeOf(tile.getType()))];
    if (depth > axis.depth)
      axis = {depth, static_cast<unsigned>(along)};
  }

  /// Contiguous elements per thread: as many as the widest type moves in 16 bytes, so that sectors are full. Fewer if
  /// this access would take more than two instructions where one suffices.
  int64_t blockOf(const simt::Access &access) const {
    const int64_t own = simt::vectorWidth(access, warps);
    const auto found = blocks.find(keyOf(access));
    return found != blocks.end() && own <= 2 * found->second ? std::min(own, found->second) : own;
  }

  /// Whether each warp holds whole rows of the tile, so that it reduces them without other warps.
  bool wantsWholeRows(const simt::Access &access, unsigned fastest) const {
    const auto found = axes.find(SmallVector<int64_t>(access.sizes));
    if (found == axes.end() || found->second.axis != fastest)
      return false;
    const simt::TileShape tile(access.sizes);
    const simt::Extent &row = tile[fastest];
    return row.padded <= maxRowValues * simt::numLanes && int64_t{1} << (tile.coreBits() - row.coreBits) >= warps;
  }

  using Key = std::pair<SmallVector<int64_t>, SmallVector<unsigned>>;
  static Key keyOf(const simt::Access &access) { return {SmallVector<int64_t>(access.sizes), simt::orderOf(access)}; }

  /// The dimension along which tiles are reduced or scanned in the innermost loop.
  struct Axis {
    int depth = 0; // number of enclosing loops, plus one
    unsigned axis = 0;
  };
  const unsigned warps;
  std::map<SmallVector<int64_t>, Axis> axes;
  std::map<Key, int64_t> blocks; // the smallest number of elements in 16 bytes, by extents and order
};
} // namespace

static void choose(tile::AccessOp op, const Shapes &shapes) {
  SmallVector<int64_t> strides;
  const simt::Access access = GlobalAccess{op}.inMemory(strides);
  const simt::TileLayout layout = shapes.layoutOf(access);
  op->setAttr("simt.layout", simt::LayoutAttr::get(op->getContext(), layout));
  setVector(op, simt::trafficOf(access, layout).vector);
}

// --- Layouts that accesses share -------------------------------------------------------------------------------------

namespace {
/// Converts a layout to one for `sizes`, which differ only by extents of 1.
simt::TileLayout withOnes(simt::TileLayout layout, ArrayRef<int64_t> sizes) {
  for (unsigned dim = layout.rank(); dim-- > 0;)
    if (layout.shape()[dim].size == 1 && layout.rank() > 1)
      layout = layout.slice(dim);
  for (const auto [dim, size] : llvm::enumerate(sizes))
    if (size == 1 && layout.rank() < sizes.size())
      layout = layout.expand(static_cast<unsigned>(dim));
  return layout;
}

/// Groups tiles of one shape (up to extents of 1) that are combined by elementwise operations, and their accesses.
class AccessGroups {
public:
  explicit AccessGroups(func::FuncOp func) {
    func.walk([&](Operation *op) {
      auto reshape = dyn_cast<tile::ReshapeOp>(op);
      if (isElementwise(op) || (reshape && differsByUnits(reshape.getSource().getType(), reshape.getType())))
        join(op);
      else if (auto access = dyn_cast<tile::AccessOp>(op); access && (access.isLoad() || access.isStore()))
        join(access.getTile(), access.getTile());
    });
    func.walk([&](tile::AccessOp access) {
      if ((access.isLoad() || access.isStore()) && access.getIndexRank() == 0)
        accesses[classLeader(access.getTile())].push_back(access);
    });
    func.walk([&](tile::DotOp dot) {
      for (const Value tile : {dot.getA(), dot.getB(), dot.getAcc(), dot.getResult()})
        accesses.erase(classLeader(tile)); // products choose their own layouts
    });
  }

  void agree() {
    for (const auto &[leader, group] : accesses)
      agree(group);
  }

private:
  void join(Value a, Value b) { classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer()); }
  void join(Operation *op) {
    const Value result = op->getResult(0);
    if (isa<RankedTensorType>(result.getType()))
      for (const Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          join(result, operand);
  }
  const void *classLeader(Value tile) const {
    const auto found = classes.findLeader(tile.getAsOpaquePointer());
    return found == classes.member_end() ? tile.getAsOpaquePointer() : *found;
  }
  static void agree(ArrayRef<tile::AccessOp> group);

  llvm::EquivalenceClasses<const void *> classes;
  llvm::MapVector<const void *, SmallVector<tile::AccessOp>> accesses;
};

void AccessGroups::agree(ArrayRef<tile::AccessOp> group) {
  const auto order = [](tile::AccessOp op) { // of extents above 1, fastest first
    SmallVector<int64_t> strides;
    const simt::Access access = GlobalAccess{op}.inMemory(strides);
    SmallVector<int64_t> dims;
    for (const unsigned dim : simt::orderOf(access))
      if (access.sizes[dim] > 1)
        dims.push_back(llvm::count_if(access.sizes.take_front(dim), [](int64_t size) { return size > 1; }));
    return dims;
  };
  const auto [least, most] =
      std::minmax_element(group.begin(), group.end(), [&](auto a, auto b) { return getVector(a) < getVector(b); });
  const bool haveEqualOrder = llvm::all_of(group, [&](tile::AccessOp op) { return order(op) == order(*least); });
  if (!haveEqualOrder || order(*least).empty())
    return;
  const tile::AccessOp first = getVector(*most) <= 2 * getVector(*least) ? *least : *most;
  const simt::TileLayout layout = first->getAttrOfType<simt::LayoutAttr>("simt.layout").getLayout();
  const int64_t widest = getVector(first);
  for (tile::AccessOp op : group) {
    const auto sizes = tile::shapeOf(op.getTile().getType());
    op->setAttr("simt.layout", simt::LayoutAttr::get(op->getContext(), withOnes(layout, sizes)));
    setVector(op, std::min(getVector(op), widest));
  }
}
} // namespace

// --- Reasons ---------------------------------------------------------------------------------------------------------

/// The limits that keep vectors of `wanted` elements from being aligned: known values that are no multiples, and values
/// that may be no multiples.
static std::string whyNoMultiples(ArrayRef<Limit> limits, int64_t wanted) {
  std::string known, unknown;
  int64_t count = 0;
  bool ofStride = false; // whether a stride is unknown
  for (const Limit &limit : limits) {
    if (limit.divisor % wanted == 0 || limit.what == extentLimit)
      continue;
    const std::string name = limit.what + (limit.dim ? " of dimension " + std::to_string(*limit.dim) : std::string());
    if (limit.isExact)
      known += (known.empty() ? "" : ", and ") + name + " is " + std::to_string(limit.divisor) + ", no multiple of " +
               std::to_string(wanted);
    else
      unknown += (count++ ? " and " : "") + name, ofStride |= limit.what == strideLimit;
  }
  if (count)
    unknown += std::string(" would have to be known as ") + (count > 1 ? "multiples" : "a multiple") + " of " +
               std::to_string(wanted) +
               (ofStride ? " (strides are known as multiples of 16 alone: in --args, write the extents that follow as "
                           "numbers whose product 16 divides)"
                         : "");
  if (known.empty() && unknown.empty())
    return "there is no more for each thread";
  return known + (known.empty() || unknown.empty() ? "" : ", and ") + unknown;
}

std::string whyNarrow(tile::AccessOp op) {
  const GlobalAccess global{op};
  SmallVector<int64_t> strides;
  const simt::Access access = global.inMemory(strides);
  const int64_t vector = getVector(op);
  if (vector * global.bytes() >= 16)
    return "";
  if (vector < simt::vectorWidth(access, static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>()))))
    return "other operations requested the tile's layout";
  if (global.isSingle())
    return "atomics are done one by one";
  const unsigned fastest = simt::orderOf(access).front();
  if (strides[fastest] != 1)
    return "elements do not lie together";
  SmallVector<Limit> limits = global.limits(fastest);
  for (const auto [dim, size, stride] : llvm::enumerate(access.sizes, strides))
    if (dim != fastest && size > 1 && stride != simt::unknownStride)
      limits.push_back({stride, strideLimit, static_cast<unsigned>(dim), /*isExact=*/true});
  limits.push_back({access.sizes[fastest], "the tile's extent", fastest, /*isExact=*/true});
  return whyNoMultiples(limits, 16 / global.bytes());
}

simt::Traffic trafficIn(const simt::TileLayout &layout, tile::AccessOp op) {
  SmallVector<int64_t> strides;
  const simt::Access access = GlobalAccess{op}.inMemory(strides);
  return simt::trafficOf(access, layout);
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

int64_t vectorWidthIn(const simt::TileLayout &layout, tile::LoadOp load) {
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
  int64_t run = 1; // contiguous first values of a thread
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
    if (!llvm::isPowerOf2_64(warps) || warps > maxWarps) {
      emitUserError(func) << "expected 'warps' of kernel '" << func.getName() << "' to be a power of two up to "
                          << maxWarps << ", but got " << warps;
      return signalPassFailure();
    }
    const Shapes shapes(func, static_cast<unsigned>(warps));
    func.walk([&](tile::AccessOp access) { choose(access, shapes); });
    AccessGroups(func).agree();
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// Loads and stores small tiles in the layouts of their users, instead of converting them.
//
//     %0 = tile.load %gamma[…] : …, #pairs
//     %1 = arith.extf %0 : …, #pairs                     %1 = tile.load %gamma[…] : …, #row
//     %2 = simt.convert %1 : …, #pairs -> #row    ──►    %2 = arith.extf %1 : …, #row
//
// A conversion between lanes or warps costs instructions, and through shared memory two barriers. Data loaded by one
// warp are in the L1 cache for the others, and the L2 cache combines partial sectors of stores. So for tiles of a few
// kilobytes a direct access is cheaper, if lanes access adjacent elements and do not compute much more. If each thread
// would hold the whole tile instead of an element, the conversion is cheaper. Larger tiles are stored in their present
// layout if that does not increase the traffic. Operands of products are left to gpu-schedule-copies.
//
// If a tile is computed from narrower ones, those are converted, and it is computed in the other layout:
//
//     %1 = arith.extf %0 : bf16 to f32, #rows            %1 = simt.convert %0 : bf16, #rows -> #mma
//     %2 = simt.convert %1 : f32, #rows -> #mma   ──►    %2 = arith.extf %1 : bf16 to f32, #mma

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/MoveLayouts.h"

#include "dialect/simt/layout/Convert.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_ADOPTLAYOUTS
#include "lowering/gpu/Passes.h.inc"

using simt::LayoutAttr;
using simt::TileLayout;

/// The largest size in bytes of a small tile, for loads and for stores. An access to one is cheap if it fills half of
/// the sectors that it touches, or touches at most `fewSectors` of them. `kiln-bench static` counts sectors and the
/// wavefronts of the conversions that are saved.
static constexpr int64_t smallLoad = 8 << 10, smallStore = 1 << 10, fewSectors = 64;
/// The most operations between a load and a conversion that are recomputed.
static constexpr int maxSteps = 8;

static int64_t bytesOf(RankedTensorType tile) {
  return tile.getNumElements() * std::max(8u, tile.getElementTypeBitWidth()) / 8;
}

/// Whether the tile can be accessed in `layout` without much more traffic.
static bool isCheap(tile::AccessOp access, const TileLayout &layout) {
  constexpr int64_t sector = 32;
  const simt::Traffic traffic = trafficIn(layout, access);
  const int64_t touched = traffic.sectors * sector;
  if (bytesOf(access.getTile().getType()) <= (access.isLoad() ? smallLoad : smallStore))
    return 2 * traffic.bytes >= touched || traffic.sectors * traffic.vectors <= fewSectors;
  return access.isStore() && traffic.bytes == touched && traffic.vector >= getVector(access);
}

/// Changes the layout of an access.
static void adopt(tile::AccessOp access, LayoutAttr layout) {
  access->setAttr("simt.layout", layout);
  setVector(access, trafficIn(layout.getLayout(), access).vector);
}

static bool isConstantLike(Operation *op) { return isa<arith::ConstantOp, tile::IotaOp, tile::SplatOp>(op); }

/// The layout of the operands of `op` for a result in `layout`; null if it is not determined.
static LayoutAttr operandLayout(Operation *op, LayoutAttr layout) {
  auto move = dyn_cast<tile::MoveOp>(op);
  if (!move)
    return isElementwise(op) ? layout : LayoutAttr();
  const auto source = sourceLayout(move, layout.getLayout());
  return source ? LayoutAttr::get(op->getContext(), *source) : LayoutAttr();
}

/// Whether the tile depends only on small loads, constants and scalars, by a few operations that can be computed in
/// `layout`.
static bool canRecompute(Value value, LayoutAttr layout, int steps = maxSteps) {
  Operation *const op = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()) || simt::layoutOf(value) == layout)
    return true;
  if (!op || steps == 0)
    return false;
  if (isConstantLike(op))
    return true;
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return isCheap(cast<tile::AccessOp>(op), layout.getLayout());
  const LayoutAttr wanted = operandLayout(op, layout);
  return wanted && llvm::all_of(op->getOperands(), [&](Value each) { return canRecompute(each, wanted, steps - 1); });
}

// --- Costs, in instructions of a thread ------------------------------------------------------------------------------

/// The cost of an operation with a result in `layout`. Loads have their own predicates.
static int64_t instructionsOf(Operation *op, const TileLayout &layout) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return 2 * trafficIn(layout, cast<tile::AccessOp>(op)).vectors;
  return isElementwise(op) ? layout.numStored() : 0;
}

/// The cost of computing the tile in `layout`, for tiles accepted by canRecompute.
static int64_t instructionsFor(Value value, LayoutAttr layout) {
  Operation *const op = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()) || simt::layoutOf(value) == layout || isConstantLike(op))
    return 0;
  int64_t count = instructionsOf(op, layout.getLayout());
  if (!isa<tile::LoadOp>(op))
    for (const Value operand : op->getOperands())
      count += instructionsFor(operand, operandLayout(op, layout));
  return count;
}

/// The cost of the tile's present computation, as far as it has no other user.
static int64_t instructionsSpared(Value value) {
  Operation *const op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()) || !value.hasOneUse() || isConstantLike(op))
    return 0;
  int64_t count = instructionsOf(op, simt::layoutOf(value).getLayout());
  if (isElementwise(op) || isa<tile::MoveOp>(op))
    for (const Value operand : op->getOperands())
      count += instructionsSpared(operand);
  return count;
}

/// The cost of converting a tile to a layout, with barriers.
static int64_t instructionsToConvert(Value tile, const TileLayout &to) {
  const TileLayout from = simt::layoutOf(tile).getLayout();
  const unsigned bits = std::max(8u, getElementTypeOrSelf(tile.getType()).getIntOrFloatBitWidth());
  const simt::ConvertPlan plan = simt::planConvert(from, to, bits, {});
  const int64_t repeats = std::max(from.numStored() >> from.regBits(), to.numStored() >> to.regBits());
  if (!plan.isShared())
    return repeats * plan.shuffle().instructions(bits) + simt::barriersWorth;
  return repeats * (plan.shared().store.instructions() + plan.shared().load.instructions()) + simt::barriersWorth;
}

static int64_t instructionsOf(simt::ConvertOp convert) {
  return instructionsToConvert(convert.getSource(), simt::layoutOf(convert.getResult()).getLayout());
}

/// Whether the conversion costs at least as many instructions as recomputing its tile in the required layout.
static bool isCheaperRecomputed(simt::ConvertOp convert) {
  const Value source = convert.getSource();
  return instructionsFor(source, simt::layoutOf(convert.getResult())) - instructionsSpared(source) <=
         instructionsOf(convert);
}

namespace {
class Recomputing {
public:
  /// The value in a layout, recomputed after its definition.
  Value in(LayoutAttr layout, Value value);

private:
  DenseMap<std::pair<Value, Attribute>, Value> versions;
};
} // namespace

Value Recomputing::in(LayoutAttr layout, Value value) {
  if (!isa<RankedTensorType>(value.getType()) || simt::layoutOf(value) == layout)
    return value;
  if (const Value known = versions.lookup({value, layout}))
    return known;
  Operation *const op = value.getDefiningOp();
  SmallVector<Value> operands(op->getOperands());
  if (!isConstantLike(op) && !isa<tile::LoadOp>(op))
    for (Value &operand : operands)
      operand = in(operandLayout(op, layout), operand);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Operation *const again = builder.clone(*op);
  again->setOperands(operands);
  const Value version = again->getResult(0);
  again->getResult(0).setType(simt::withLayout(value.getType(), layout));
  if (auto load = dyn_cast<tile::LoadOp>(again))
    adopt(cast<tile::AccessOp>(again), layout);
  if (auto constant = dyn_cast<arith::ConstantOp>(again))
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(cast<ShapedType>(version.getType())));
  return versions[{value, layout}] = version;
}

/// Whether the conversion leads to an operand of a product.
static bool leadsToProduct(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    return isa<tile::DotOp>(user) || (isa<tile::TransposeOp, tile::ReshapeOp>(user) && leadsToProduct(user));
  });
}

static bool staysInLane(simt::ConvertOp convert) {
  return simt::tierOf(simt::layoutOf(convert.getSource()).getLayout(),
                      simt::layoutOf(convert.getResult()).getLayout()) < simt::Tier::shuffle;
}

/// If all users of a conversion are stores, stores the tile in its present layout.
static void storeInPresentLayout(simt::ConvertOp convert) {
  const LayoutAttr layout = simt::layoutOf(convert.getSource());
  const bool canStore = llvm::all_of(convert->getUses(), [&](OpOperand &use) {
    auto access = dyn_cast<tile::AccessOp>(use.getOwner());
    return access && isa<tile::StoreOp>(use.getOwner()) && isCheap(access, layout.getLayout());
  });
  if (!canStore)
    return;
  for (Operation *user : convert->getUsers())
    adopt(cast<tile::AccessOp>(user), layout);
  convert.replaceAllUsesWith(convert.getSource());
}

// --- Conversions of narrower tiles -----------------------------------------------------------------------------------

namespace {
/// The elementwise operations that compute the source of a conversion for it alone, the last one first, and the tiles
/// that they read, except for constants.
struct Chain {
  llvm::SetVector<Operation *> operations;
  llvm::SetVector<Value> tiles;

  /// Whether the operation, which computes one of the tiles, was added.
  bool add(Operation *op, simt::ConvertOp convert) {
    const auto isPart = [&](Operation *user) { return user == convert || operations.contains(user); };
    if (op->getNumResults() != 1 || !tiles.contains(op->getResult(0)) || !isElementwise(op) ||
        !llvm::all_of(op->getUsers(), isPart))
      return false;
    operations.insert(op);
    tiles.remove(op->getResult(0));
    for (const Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) &&
          !(operand.getDefiningOp() && isConstantLike(operand.getDefiningOp())))
        tiles.insert(operand);
    return true;
  }
  int64_t instructionsToConvert(const TileLayout &to) const {
    int64_t count = 0;
    for (const Value tile : tiles)
      count += gpu::instructionsToConvert(tile, to);
    return count;
  }
};
} // namespace

/// The part of the chain before a conversion whose tiles are the cheapest to convert; empty if the conversion is.
static Chain cheapestToConvert(simt::ConvertOp convert) {
  const TileLayout to = simt::layoutOf(convert.getResult()).getLayout();
  Chain chain, cheapest;
  chain.tiles.insert(convert.getSource());
  if (to.numStored() > simt::layoutOf(convert.getSource()).getLayout().numStored())
    return cheapest; // more threads would compute each element
  int64_t least = instructionsOf(convert);
  for (Operation *op = convert->getPrevNode(); op; op = op->getPrevNode())
    if (chain.add(op, convert) && chain.instructionsToConvert(to) < least) {
      least = chain.instructionsToConvert(to);
      cheapest = chain;
    }
  return cheapest;
}

/// Converts narrower tiles from which the source is computed, and computes it in the new layout.
static void convertNarrower(simt::ConvertOp convert, Recomputing &recomputing) {
  const Chain chain = cheapestToConvert(convert);
  const LayoutAttr layout = simt::layoutOf(convert.getResult());
  OpBuilder builder(convert);
  IRMapping made;
  for (const Value tile : chain.tiles)
    made.map(tile, simt::ConvertOp::create(builder, convert.getLoc(), simt::withLayout(tile.getType(), layout), tile));
  for (Operation *op : llvm::reverse(chain.operations)) {
    for (const Value operand : op->getOperands())
      if (!made.contains(operand))
        made.map(operand, recomputing.in(layout, operand)); // a constant or a scalar
    Operation *const again = builder.clone(*op, made);
    again->getResult(0).setType(simt::withLayout(op->getResult(0).getType(), layout));
  }
  if (!chain.operations.empty())
    convert.replaceAllUsesWith(made.lookup(convert.getSource()));
}

/// Erases unused operations, from the last user back to the loads.
static void eraseDead(func::FuncOp func) {
  SmallVector<Operation *> operations;
  func.walk([&](Operation *op) { operations.push_back(op); });
  for (Operation *op : llvm::reverse(operations))
    if (isOpTriviallyDead(op))
      op->erase();
}

namespace {
struct AdoptLayouts : impl::AdoptLayoutsBase<AdoptLayouts> {
  using AdoptLayoutsBase::AdoptLayoutsBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr("tile.kernel"))
      return;
    SmallVector<simt::ConvertOp> converts;
    getOperation().walk([&](simt::ConvertOp convert) { converts.push_back(convert); });
    Recomputing recomputing;
    for (simt::ConvertOp convert : converts) {
      const LayoutAttr wanted = simt::layoutOf(convert.getResult());
      if (staysInLane(convert) || leadsToProduct(convert))
        continue;
      storeInPresentLayout(convert);
      if (!convert->use_empty() && canRecompute(convert.getSource(), wanted) && isCheaperRecomputed(convert))
        convert.replaceAllUsesWith(recomputing.in(wanted, convert.getSource()));
      else if (!convert->use_empty())
        convertNarrower(convert, recomputing);
    }
    eraseDead(getOperation());
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// Assigns a layout to every tile.
//
// The layouts of accesses and products are given. They are propagated forwards along operations, then backwards to
// their operands, then forwards again for loop-carried tiles. Remaining tiles, as between two reductions, get theirs
// from their operands, also through broadcasts: lanes that hold equal elements take one repeat each. Tiles without a
// preferred layout are blocked. Then types are set in program order. If an operand is not in the layout that its
// operation needs, a `simt.convert` after the operand's definition converts it, once for each layout. A tile computed
// only from constants, positions and scalars is recomputed instead. So is one that also depends on a few loaded
// numbers, if the conversion would need shared memory; each thread then loads its own. Operations that move elements to
// other threads keep the layout; gpu-expand-exchanges moves the elements.

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/MoveLayouts.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"
#include "lowering/analysis/LoopCarried.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_PROPAGATELAYOUTS
#include "lowering/gpu/Passes.h.inc"

using simt::Hw;
using simt::LayoutAttr;
using simt::TileLayout;

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
static LayoutAttr attributeOf(const TileLayout &layout, MLIRContext *context) {
  return LayoutAttr::get(context, layout);
}

/// The layout on an access, a product or a sort.
static LayoutAttr chosen(Operation *op) { return op->getAttrOfType<LayoutAttr>("simt.layout"); }

// --- How operations map layouts ------------------------------------------------------------------

/// Whether a move keeps the tile's shape, as a roll does. If elements move to other threads, source and result have one
/// layout.
static bool keepsShape(tile::MoveOp move) {
  return isTile(move.getMoved()) &&
         tile::shapeOf(move.getMoved().getType()) == tile::shapeOf(move->getResult(0).getType());
}

/// Whether all tiles of an operation have one layout.
static bool needsOneLayout(Operation *op) { return isa<tile::ScanOp, tile::SortOp>(op); }

/// The layout if tiles of such an operation can have it, otherwise null.
static LayoutAttr supportedLayout(Operation *op, LayoutAttr layout) {
  auto scan = dyn_cast<tile::ScanOp>(op);
  const bool fits = layout && (!scan || simt::planScan(layout.getLayout(), static_cast<unsigned>(scan.getAxis())));
  return fits ? layout : LayoutAttr();
}

/// Whether this pass knows the layouts of the tiles of `op`. Operands of reductions, histograms and prints may have
/// any.
static bool hasRule(Operation *op) {
  return isElementwise(op) || needsOneLayout(op) || op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tile::AccessOp, tile::MoveOp, tile::DotOp, tile::TakeOp, tile::ReduceOp, tile::HistogramOp, tile::IotaOp,
             tile::PrintOp, tile::CheckOp, scf::ForOp, scf::WhileOp, scf::IfOp, scf::YieldOp, scf::ConditionOp>(op);
}

/// Reports operations on tiles that have no rule, which would otherwise keep tiles without a layout.
static LogicalResult checkRules(func::FuncOp func) {
  const WalkResult walk = func.getBody().walk([](Operation *op) {
    const bool hasTiles = llvm::any_of(op->getOperands(), isTile) || llvm::any_of(op->getResults(), isTile);
    if (!hasTiles || hasRule(op))
      return WalkResult::advance();
    op->emitOpError("expected an operation on tiles whose layouts are known");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// The layout of operand `number` of `op` for a result in `result`; null if any is allowed.
static LayoutAttr operandLayout(Operation *op, unsigned number, LayoutAttr result) {
  MLIRContext *const context = op->getContext();
  const Value operand = op->getOperand(number);
  if (!isTile(operand))
    return {};
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    if (number == 2)
      return result;
    if (!op->hasAttr("simt.mma"))
      return {};
    const auto a = cast<RankedTensorType>(dot.getA().getType());
    const int64_t K = a.getShape().back();
    return attributeOf(simt::mmaOperand(result.getLayout(), number == 0 ? simt::MmaOperand::A : simt::MmaOperand::B, K,
                                        *simt::mmaShapeFor(multipliedBits(dot), K),
                                        op->hasAttr("simt.chained") ? simt::KOrder::accumulator : simt::KOrder::isa),
                       context);
  }
  if (auto access = dyn_cast<tile::AccessOp>(op)) {
    const unsigned first = access.getSubscripts().getBeginOperandIndex();
    if (number < first || number >= first + access.getSubscripts().size())
      return chosen(op);
    TileLayout index = chosen(op).getLayout(); // of the index tile's dimensions
    while (index.rank() > access.getIndexRank())
      index = index.slice(index.rank() - 1);
    return attributeOf(index, context);
  }
  if (auto move = dyn_cast<tile::MoveOp>(op)) {
    const auto source = result ? sourceLayout(move, result.getLayout()) : std::nullopt;
    return source ? attributeOf(*source, context) : keepsShape(move) ? result : LayoutAttr();
  }
  if (needsOneLayout(op))
    return supportedLayout(op, result);
  if (isa<tile::TakeOp>(op)) // the index has the source's layout
    return number == 1 ? result : LayoutAttr();
  return isElementwise(op) ? result : LayoutAttr();
}

/// The layout of the result of `op` if operand `number` has `operand`; null if it is not determined.
static LayoutAttr resultLayout(Operation *op, LayoutAttr operand) {
  MLIRContext *const context = op->getContext();
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return isTile(reduce.getResult())
               ? attributeOf(operand.getLayout().slice(static_cast<unsigned>(reduce.getAxis())), context)
               : LayoutAttr();
  if (needsOneLayout(op))
    return supportedLayout(op, operand);
  if (auto move = dyn_cast<tile::MoveOp>(op); move && isTile(op->getResult(0))) {
    const auto result = resultLayout(move, operand.getLayout());
    return result ? attributeOf(*result, context) : keepsShape(move) ? operand : LayoutAttr();
  }
  return isElementwise(op) ? operand : LayoutAttr();
}

/// The layout of the result of `op` if its tile has `operand`, also through broadcasts.
static LayoutAttr repeatedLayout(tile::MoveOp op, LayoutAttr operand) {
  const auto result = spreadLayout(op, operand.getLayout());
  return result ? attributeOf(*result, op->getContext()) : LayoutAttr();
}

// --- Preferred layouts ---------------------------------------------------------------------------

namespace {

class Propagation {
public:
  explicit Propagation(func::FuncOp func) : func(func), warps(static_cast<unsigned>(warpsOf(func))) {
    func.walk<WalkOrder::PreOrder>([&](Operation *op) { operations.push_back(op); });
  }

  void run() {
    forwards();
    backwards();
    forwards();
    forwards(/*repeats=*/true);
    for (Operation *op : operations)
      settle(op);
    for (Operation *op : llvm::reverse(operations)) // recomputed for all users
      if (isOpTriviallyDead(op))
        op->erase();
  }

private:
  /// With `repeats`, also through broadcasts.
  void forwards(bool repeats = false);
  void backwards();
  void prefer(Value value, LayoutAttr layout) {
    if (layout && isTile(value))
      preferred.try_emplace(value, layout);
  }
  LayoutAttr preferredLayoutOf(Value value) const { return preferred.lookup(value); }
  LayoutAttr layoutFor(Value value) const;
  LayoutAttr blockedLayout(Value value) const;

  void settle(Operation *op);
  void settleTogether(Operation *op);
  void settle(Value value, LayoutAttr layout) { value.setType(simt::withLayout(value.getType(), layout)); }
  Value in(LayoutAttr layout, Value value);
  bool isFree(Value value, bool readsFew = false, int effort = 12) const;
  bool isRecomputed(Value value, LayoutAttr layout) const;

  mutable func::FuncOp func;
  const unsigned warps;
  SmallVector<Operation *> operations;
  DenseMap<Value, LayoutAttr> preferred;
  DenseMap<std::pair<Value, Attribute>, Value> versions;
};

} // namespace

/// The result of a yielded value, if it has one; the condition of a while has none.
static Value resultOf(scf::YieldOp yield, unsigned number) {
  Operation *const parent = yield->getParentOp();
  const unsigned others = yield->getNumOperands() - parent->getNumResults();
  return number < others ? Value() : parent->getResult(number - others);
}

/// The values that `yield` defines: results of its operation and, for a loop, the next iteration's arguments.
static SmallVector<Value> targetsOf(scf::YieldOp yield, unsigned number) {
  const Value result = resultOf(yield, number);
  if (!result)
    return {};
  SmallVector<Value> targets = {result};
  if (const std::optional<LoopCarried> loop = LoopCarried::of(yield->getParentOp()))
    targets.push_back(loop->arguments[cast<OpResult>(result).getResultNumber()]);
  return targets;
}

void Propagation::forwards(bool repeats) {
  for (Operation *op : operations) {
    if (const std::optional<LoopCarried> loop = LoopCarried::of(op)) {
      for (const auto [init, argument, result] : llvm::zip_equal(loop->inits, loop->arguments, loop->results)) {
        prefer(argument, preferredLayoutOf(init.get()));
        prefer(result, preferredLayoutOf(argument));
      }
    } else if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      for (const auto [number, value] : llvm::enumerate(yield.getOperands()))
        for (const Value target : targetsOf(yield, number))
          prefer(target, preferredLayoutOf(value));
    } else if (needsOneLayout(op)) {
      for (const Value result : op->getResults())
        prefer(result, chosen(op));
      for (const Value source : op->getOperands())
        for (const Value result : op->getResults())
          prefer(result, resultLayout(op, preferredLayoutOf(source)));
    } else if (auto take = dyn_cast<tile::TakeOp>(op)) {
      prefer(take.getResult(), preferredLayoutOf(take.getIndex()));
    } else if (op->getNumResults() == 1 && isTile(op->getResult(0))) {
      prefer(op->getResult(0), chosen(op));
      for (const Value operand : op->getOperands())
        if (const LayoutAttr layout = preferredLayoutOf(operand)) {
          prefer(op->getResult(0), resultLayout(op, layout));
          if (repeats && isa<tile::MoveOp>(op) && !isFree(operand))
            prefer(op->getResult(0), repeatedLayout(cast<tile::MoveOp>(op), layout));
        }
    }
  }
}

void Propagation::backwards() {
  for (Operation *op : llvm::reverse(operations)) {
    if (const std::optional<LoopCarried> loop = LoopCarried::of(op)) {
      for (const auto [init, argument] : llvm::zip_equal(loop->inits, loop->arguments))
        prefer(init.get(), preferredLayoutOf(argument));
      continue;
    }
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      for (const auto [number, value] : llvm::enumerate(yield.getOperands()))
        for (const Value target : targetsOf(yield, number))
          prefer(value, preferredLayoutOf(target));
      continue;
    }
    if (needsOneLayout(op)) {
      for (const Value result : op->getResults())
        for (const Value source : op->getOperands())
          prefer(source, supportedLayout(op, preferredLayoutOf(result)));
      continue;
    }
    const LayoutAttr result = op->getNumResults() == 1 ? preferredLayoutOf(op->getResult(0)) : LayoutAttr();
    if (result || chosen(op))
      for (unsigned number = 0; number < op->getNumOperands(); ++number)
        prefer(op->getOperand(number), operandLayout(op, number, result));
  }
}

/// The preferred layout, or else blocks along the last dimension.
LayoutAttr Propagation::layoutFor(Value value) const {
  const LayoutAttr layout = preferredLayoutOf(value);
  return layout ? layout : blockedLayout(value);
}

/// Blocks along the last dimension, which can be scanned along any.
LayoutAttr Propagation::blockedLayout(Value value) const {
  const ArrayRef<int64_t> shape = tile::shapeOf(value.getType());
  const auto order = llvm::to_vector(llvm::reverse(llvm::seq(static_cast<unsigned>(shape.size()))));
  return attributeOf(simt::blocked(shape, order, SmallVector<int64_t>(shape.size(), 1), warps), func.getContext());
}

// --- Settling ------------------------------------------------------------------------------------

/// The most reloaded values per thread.
static constexpr int64_t fewValues = 32;

/// Whether the tile depends only on constants, positions and scalars, by a few operations; with `readsFew` also on
/// loads of a few numbers.
bool Propagation::isFree(Value value, bool readsFew, int effort) const {
  Operation *const op = value.getDefiningOp();
  if (!isTile(value))
    return true;
  if (!op || effort == 0)
    return false;
  if (isa<arith::ConstantOp, tile::IotaOp, tile::SplatOp>(op) || (readsFew && isFewNumbers(op)))
    return true;
  if (!isElementwise(op) && !isa<tile::MoveOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isFree(operand, readsFew, effort - 1); });
}

/// Whether the value is recomputed in `layout` rather than converted.
bool Propagation::isRecomputed(Value value, LayoutAttr layout) const {
  Operation *const op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto move = dyn_cast<tile::MoveOp>(op);
      move && isTile(move.getMoved()) && !sourceLayout(move, layout.getLayout()))
    return false; // its elements would move to other threads
  if (isFree(value))
    return true;
  const int64_t stored = layout.getLayout().numStored(), threads = int64_t{simt::numLanes} * warps;
  const int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
  const unsigned bits = std::max(8u, getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth());
  return stored <= fewValues && stored * threads >= 2 * elements && isFree(value, /*readsFew=*/true) &&
         simt::planConvert(simt::layoutOf(value).getLayout(), layout.getLayout(), bits, {}).isShared();
}

/// The value in a layout, recomputed or converted after its definition.
Value Propagation::in(LayoutAttr layout, Value value) {
  if (!layout || simt::layoutOf(value) == layout)
    return value;
  if (const Value known = versions.lookup({value, layout}))
    return known;
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *const op = value.getDefiningOp();
  Value version;
  if (isRecomputed(value, layout)) {
    SmallVector<Value> operands;
    for (unsigned number = 0; number < op->getNumOperands(); ++number)
      operands.push_back(in(operandLayout(op, number, layout), op->getOperand(number)));
    Operation *const again = builder.clone(*op);
    again->setOperands(operands);
    version = again->getResult(0);
    settle(version, layout);
    if (auto constant = dyn_cast<arith::ConstantOp>(again))
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(cast<ShapedType>(version.getType())));
    if (auto load = dyn_cast<tile::LoadOp>(again)) {
      load->setAttr("simt.layout", layout);
      setVector(cast<tile::AccessOp>(again), vectorWidthIn(layout.getLayout(), load));
    }
  } else {
    version = simt::ConvertOp::create(builder, value.getLoc(), simt::withLayout(value.getType(), layout), value);
  }
  return versions[{value, layout}] = version;
}

/// All tiles of the operation have one layout.
void Propagation::settleTogether(Operation *op) {
  LayoutAttr layout = chosen(op);
  for (const Value source : op->getOperands())
    layout = layout ? layout : supportedLayout(op, simt::layoutOf(source));
  layout = layout ? layout : blockedLayout(op->getOperand(0));
  for (OpOperand &operand : op->getOpOperands())
    operand.set(in(layout, operand.get()));
  for (const Value result : op->getResults())
    settle(result, layout);
}

void Propagation::settle(Operation *op) {
  if (needsOneLayout(op))
    return settleTogether(op);
  if (auto counted = dyn_cast<tile::HistogramOp>(op); counted && counted.getMask())
    counted.getMaskMutable().assign(in(simt::layoutOf(counted.getSource()), counted.getMask()));
  if (const std::optional<LoopCarried> loop = LoopCarried::of(op)) {
    for (const auto [init, argument, result] : llvm::zip_equal(loop->inits, loop->arguments, loop->results)) {
      if (!isTile(argument))
        continue;
      const LayoutAttr layout = layoutFor(argument);
      init.set(in(layout, init.get()));
      settle(argument, layout);
      settle(result, layout);
      if (auto repeated = dyn_cast<scf::WhileOp>(op))
        settle(repeated.getBeforeArguments()[init.getOperandNumber()], layout);
    }
    return;
  }
  if (isa<scf::ConditionOp>(op)) // handled with its loop
    return;
  if (isa<scf::IfOp>(op)) {
    for (const Value result : op->getResults())
      if (isTile(result))
        settle(result, layoutFor(result));
    return;
  }
  if (auto yield = dyn_cast<scf::YieldOp>(op)) {
    for (OpOperand &operand : yield->getOpOperands())
      if (isTile(operand.get()))
        operand.set(in(simt::layoutOf(resultOf(yield, operand.getOperandNumber())), operand.get()));
    return;
  }
  const bool makesTile = op->getNumResults() == 1 && isTile(op->getResult(0));
  LayoutAttr layout = makesTile ? (chosen(op) ? chosen(op) : layoutFor(op->getResult(0))) : LayoutAttr();
  for (OpOperand &operand : op->getOpOperands())
    if (isTile(operand.get()))
      operand.set(in(operandLayout(op, operand.getOperandNumber(), layout), operand.get()));
  if (auto reduce = dyn_cast<tile::ReduceOp>(op); reduce && makesTile)
    layout = resultLayout(op, simt::layoutOf(reduce.getSource()));
  if (!makesTile)
    return;
  settle(op->getResult(0), layout);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(cast<ShapedType>(constant.getType())));
}

/// Moves a conversion directly before its first use in its block, which shortens the lifetime of its result. A
/// conversion used in a loop stays outside of it.
static void moveToFirstUse(simt::ConvertOp convert) {
  Operation *first = nullptr;
  for (Operation *user : convert->getUsers()) {
    Operation *const here = convert->getBlock()->findAncestorOpInBlock(*user);
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  if (first)
    convert->moveBefore(first);
}

/// Reports tiles with too many elements per thread.
static LogicalResult checkSizes(func::FuncOp func) {
  const WalkResult walk = func.walk([&](Operation *op) {
    for (const Type type : op->getResultTypes())
      if (const LayoutAttr layout = simt::layoutOf(type))
        if (const int64_t values = layout.getLayout().numStored(); values > maxValues) {
          emitUserError(op) << "each of " << 32 * warpsOf(func) << " threads would hold " << values
                            << " values of a tile of " << tile::shapeText(type) << ", but at most " << maxValues
                            << " are possible: choose smaller tiles, loop over parts of them, or ask for more 'warps'";
          return WalkResult::interrupt();
        }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// The most registers of a tile that is hoisted out of a loop.
static constexpr int64_t fewRegisters = 4;

/// Hoists small loop-invariant tiles, in particular conversions.
static void hoistSmallTiles(scf::ForOp loop) {
  const auto isSmall = [](Type type) {
    const auto tile = dyn_cast<RankedTensorType>(type);
    return tile && simt::layoutOf(tile).getLayout().numStored() <= fewRegisters;
  };
  moveLoopInvariantCode(
      loop.getLoopRegions(), [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
      [&](Operation *op, Region *) { return isPure(op) && llvm::all_of(op->getResultTypes(), isSmall); },
      [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
}

namespace {
struct PropagateLayouts : impl::PropagateLayoutsBase<PropagateLayouts> {
  using PropagateLayoutsBase::PropagateLayoutsBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr("tile.kernel"))
      return;
    if (failed(checkRules(getOperation())))
      return signalPassFailure();
    Propagation(getOperation()).run();
    SmallVector<simt::ConvertOp> converts;
    getOperation().walk([&](simt::ConvertOp convert) { converts.push_back(convert); });
    llvm::for_each(converts, moveToFirstUse);
    getOperation().walk(hoistSmallTiles); // inner loops first
    if (failed(checkSizes(getOperation())))
      signalPassFailure();
  }
};
} // namespace

} // namespace kiln::lowering::gpu

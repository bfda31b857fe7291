// A layout for every tile.
//
// What accesses and products want is known. It is carried forwards along the operations, then backwards to what is made
// for them, then forwards once more for what loops carry. What is left, as between a reduction and the next, follows
// from what it is made of, also where elements are repeated: lanes that hold the same take one repeat each. A tile that
// nobody has a wish for is blocked. Then types are set in program order, and where an operand is not in the layout that
// its operation wants, a `simt.convert` brings it there, placed behind the operand's definition, once for each layout.
// A tile that is computed from constants, positions and scalars alone is computed once more instead, and so is one of
// few numbers of memory beside these that several threads need, where the conversion would take shared memory: each
// reads its own. What an operation moves to other threads keeps the layout that it has: gpu-expand-exchanges moves it.

#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/MoveLayouts.h"
#include "lowering/gpu/Passes.h"
#include "lowering/gpu/Reasons.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/Scan.h"
#include "dialect/tile/SortOps.h"
#include "lowering/Diagnostics.h"
#include "lowering/analysis/Rounds.h"
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

/// Whether a move within a tile keeps the tile's shape, as a rotation does. Where elements leave their threads, source
/// and result share a layout.
static bool keepsShape(tile::MoveOp move) {
  return isTile(move.getMoved()) &&
         tile::shapeOf(move.getMoved().getType()) == tile::shapeOf(move->getResult(0).getType());
}

/// Whether all tiles of an operation lie in one layout.
static bool isTogether(Operation *op) { return isa<tile::ScanOp, tile::SortOp>(op); }

/// The layout if tiles of such an operation can lie in it, else null.
static LayoutAttr together(Operation *op, LayoutAttr layout) {
  auto scan = dyn_cast<tile::ScanOp>(op);
  const bool fits = layout && (!scan || simt::planScan(layout.getLayout(), static_cast<unsigned>(scan.getAxis())));
  return fits ? layout : LayoutAttr();
}

/// The layout in which `op` reads operand `number` when its result is to lie in `result`; null where it takes any.
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
    TileLayout names = chosen(op).getLayout(); // of the dimensions that a tile of positions has
    while (names.rank() > access.getIndexRank())
      names = names.slice(names.rank() - 1);
    return attributeOf(names, context);
  }
  if (auto move = dyn_cast<tile::MoveOp>(op)) {
    const auto source = result ? sourceLayout(move, result.getLayout()) : std::nullopt;
    return source ? attributeOf(*source, context) : keepsShape(move) ? result : LayoutAttr();
  }
  if (isTogether(op))
    return together(op, result);
  if (isa<tile::TakeOp>(op)) // positions lie as what is taken
    return number == 1 ? result : LayoutAttr();
  return isElementwise(op) ? result : LayoutAttr();
}

/// The layout of the result of `op` when operand `number` lies in `operand`; null where it does not follow.
static LayoutAttr resultLayout(Operation *op, LayoutAttr operand) {
  MLIRContext *const context = op->getContext();
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return isTile(reduce.getResult())
               ? attributeOf(operand.getLayout().slice(static_cast<unsigned>(reduce.getAxis())), context)
               : LayoutAttr();
  if (isTogether(op))
    return together(op, operand);
  if (auto move = dyn_cast<tile::MoveOp>(op); move && isTile(op->getResult(0))) {
    const auto result = resultLayout(move, operand.getLayout());
    return result ? attributeOf(*result, context) : keepsShape(move) ? operand : LayoutAttr();
  }
  return isElementwise(op) ? operand : LayoutAttr();
}

/// The layout of the result of `op` when its tile lies in `operand`, also where elements are repeated.
static LayoutAttr repeatedLayout(tile::MoveOp op, LayoutAttr operand) {
  const auto result = spreadLayout(op, operand.getLayout());
  return result ? attributeOf(*result, op->getContext()) : LayoutAttr();
}

// --- Wishes --------------------------------------------------------------------------------------

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
    for (Operation *op : llvm::reverse(operations)) // what was made again for all that use it
      if (isOpTriviallyDead(op))
        op->erase();
  }

private:
  /// With `repeats` also through operations that repeat elements.
  void forwards(bool repeats = false);
  void backwards();
  void wish(Value value, LayoutAttr layout) {
    if (layout && isTile(value))
      wishes.try_emplace(value, layout);
  }
  LayoutAttr wishOf(Value value) const { return wishes.lookup(value); }
  LayoutAttr layoutFor(Value value) const;
  LayoutAttr blocksOf(Value value) const;

  void settle(Operation *op);
  void settleTogether(Operation *op);
  void settle(Value value, LayoutAttr layout) { value.setType(simt::withLayout(value.getType(), layout)); }
  Value in(LayoutAttr layout, Value value);
  bool isFree(Value value, bool readsFew = false, int effort = 12) const;
  bool isMadeAgain(Value value, LayoutAttr layout) const;

  mutable func::FuncOp func;
  const unsigned warps;
  SmallVector<Operation *> operations;
  DenseMap<Value, LayoutAttr> wishes;
  DenseMap<std::pair<Value, Attribute>, Value> versions;
};

} // namespace

/// The result that a yielded value becomes, if it does: whether a while goes on is none.
static Value resultOf(scf::YieldOp yield, unsigned number) {
  Operation *const parent = yield->getParentOp();
  const unsigned others = yield->getNumOperands() - parent->getNumResults();
  return number < others ? Value() : parent->getResult(number - others);
}

/// The values that `yield` hands on: results of its operation and, of a loop, what the next round begins with.
static SmallVector<Value> targetsOf(scf::YieldOp yield, unsigned number) {
  const Value result = resultOf(yield, number);
  if (!result)
    return {};
  SmallVector<Value> targets = {result};
  if (const std::optional<Rounds> loop = Rounds::of(yield->getParentOp()))
    targets.push_back(loop->arguments[cast<OpResult>(result).getResultNumber()]);
  return targets;
}

void Propagation::forwards(bool repeats) {
  for (Operation *op : operations) {
    if (const std::optional<Rounds> loop = Rounds::of(op)) {
      for (const auto [init, argument, result] : llvm::zip_equal(loop->inits, loop->arguments, loop->results)) {
        wish(argument, wishOf(init.get()));
        wish(result, wishOf(argument));
      }
    } else if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      for (const auto [number, value] : llvm::enumerate(yield.getOperands()))
        for (const Value target : targetsOf(yield, number))
          wish(target, wishOf(value));
    } else if (isTogether(op)) {
      for (const Value result : op->getResults())
        wish(result, chosen(op));
      for (const Value source : op->getOperands())
        for (const Value result : op->getResults())
          wish(result, resultLayout(op, wishOf(source)));
    } else if (auto take = dyn_cast<tile::TakeOp>(op)) {
      wish(take.getResult(), wishOf(take.getIndex()));
    } else if (op->getNumResults() == 1 && isTile(op->getResult(0))) {
      wish(op->getResult(0), chosen(op));
      for (const Value operand : op->getOperands())
        if (const LayoutAttr layout = wishOf(operand)) {
          wish(op->getResult(0), resultLayout(op, layout));
          if (repeats && isa<tile::MoveOp>(op) && !isFree(operand))
            wish(op->getResult(0), repeatedLayout(cast<tile::MoveOp>(op), layout));
        }
    }
  }
}

void Propagation::backwards() {
  for (Operation *op : llvm::reverse(operations)) {
    if (const std::optional<Rounds> loop = Rounds::of(op)) {
      for (const auto [init, argument] : llvm::zip_equal(loop->inits, loop->arguments))
        wish(init.get(), wishOf(argument));
      continue;
    }
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      for (const auto [number, value] : llvm::enumerate(yield.getOperands()))
        for (const Value target : targetsOf(yield, number))
          wish(value, wishOf(target));
      continue;
    }
    if (isTogether(op)) {
      for (const Value result : op->getResults())
        for (const Value source : op->getOperands())
          wish(source, together(op, wishOf(result)));
      continue;
    }
    const LayoutAttr result = op->getNumResults() == 1 ? wishOf(op->getResult(0)) : LayoutAttr();
    if (result || chosen(op))
      for (unsigned number = 0; number < op->getNumOperands(); ++number)
        wish(op->getOperand(number), operandLayout(op, number, result));
  }
}

/// What was wished for, else blocks along the last dimension.
LayoutAttr Propagation::layoutFor(Value value) const {
  const LayoutAttr wish = wishOf(value);
  return wish ? wish : blocksOf(value);
}

/// Blocks along the last dimension, which can be scanned along any.
LayoutAttr Propagation::blocksOf(Value value) const {
  const ArrayRef<int64_t> shape = tile::shapeOf(value.getType());
  const auto order = llvm::to_vector(llvm::reverse(llvm::seq(static_cast<unsigned>(shape.size()))));
  return attributeOf(simt::blocked(shape, order, SmallVector<int64_t>(shape.size(), 1), warps), func.getContext());
}

// --- Settling ------------------------------------------------------------------------------------

/// Values of numbers read again that a thread may hold.
static constexpr int64_t fewValues = 32;

/// Whether the tile follows from constants, positions and scalars by a few operations; with `readsFew` also from loads
/// of a few numbers.
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

/// Whether the value is made once more, in `layout`, rather than converted to it.
bool Propagation::isMadeAgain(Value value, LayoutAttr layout) const {
  Operation *const op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto move = dyn_cast<tile::MoveOp>(op);
      move && isTile(move.getMoved()) && !sourceLayout(move, layout.getLayout()))
    return false; // its elements would leave their threads
  if (isFree(value))
    return true;
  const int64_t stored = layout.getLayout().numStored(), threads = int64_t{simt::numLanes} * warps;
  const int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
  const unsigned bits = std::max(8u, getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth());
  return stored <= fewValues && stored * threads >= 2 * elements && isFree(value, /*readsFew=*/true) &&
         simt::planConvert(simt::layoutOf(value).getLayout(), layout.getLayout(), bits, {}).isShared();
}

/// The value in a layout, computed or converted behind its definition.
Value Propagation::in(LayoutAttr layout, Value value) {
  if (!layout || simt::layoutOf(value) == layout)
    return value;
  if (const Value known = versions.lookup({value, layout}))
    return known;
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *const op = value.getDefiningOp();
  Value version;
  if (isMadeAgain(value, layout)) {
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
      setVector(cast<tile::AccessOp>(again), packetIn(layout.getLayout(), load));
    }
  } else {
    version = simt::ConvertOp::create(builder, value.getLoc(), simt::withLayout(value.getType(), layout), value);
  }
  return versions[{value, layout}] = version;
}

/// All tiles of the operation lie in one layout.
void Propagation::settleTogether(Operation *op) {
  LayoutAttr layout = chosen(op);
  for (const Value source : op->getOperands())
    layout = layout ? layout : together(op, simt::layoutOf(source));
  layout = layout ? layout : blocksOf(op->getOperand(0));
  for (OpOperand &operand : op->getOpOperands())
    operand.set(in(layout, operand.get()));
  for (const Value result : op->getResults())
    settle(result, layout);
}

void Propagation::settle(Operation *op) {
  if (isTogether(op))
    return settleTogether(op);
  if (auto counted = dyn_cast<tile::HistogramOp>(op); counted && counted.getMask())
    counted.getMaskMutable().assign(in(simt::layoutOf(counted.getSource()), counted.getMask()));
  if (const std::optional<Rounds> loop = Rounds::of(op)) {
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
  if (isa<scf::ConditionOp>(op)) // settled with its loop
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

/// Puts a conversion right before its first use in its block: a thread holds what came of it as shortly as can be. What
/// a loop uses stays outside of it.
static void sink(simt::ConvertOp convert) {
  Operation *first = nullptr;
  for (Operation *user : convert->getUsers()) {
    Operation *const here = convert->getBlock()->findAncestorOpInBlock(*user);
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  if (first)
    convert->moveBefore(first);
}

/// Refuses tiles of which a thread would hold too much.
static LogicalResult checkSizes(func::FuncOp func) {
  const WalkResult walk = func.walk([&](Operation *op) {
    for (const Type type : op->getResultTypes())
      if (const LayoutAttr layout = simt::layoutOf(type))
        if (const int64_t values = layout.getLayout().numStored(); values > mostValues) {
          emitUserError(op) << "each of " << 32 * warpsOf(func) << " threads would hold " << values
                            << " values of a tile of " << tile::shapeText(type) << ", but at most " << mostValues
                            << " are possible: choose smaller tiles, loop over parts of them, or ask for more 'warps'";
          return WalkResult::interrupt();
        }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Registers of a tile that is small enough to wait for a loop to end.
static constexpr int64_t fewRegisters = 4;

/// Moves small tiles that are the same in all rounds in front of the loop, above all conversions of them.
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
    Propagation(getOperation()).run();
    SmallVector<simt::ConvertOp> converts;
    getOperation().walk([&](simt::ConvertOp convert) { converts.push_back(convert); });
    llvm::for_each(converts, sink);
    getOperation().walk(hoistSmallTiles); // inner loops first
    if (failed(checkSizes(getOperation())))
      signalPassFailure();
  }
};
} // namespace

} // namespace kiln::lowering::gpu

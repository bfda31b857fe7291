// Decides which tiles get scratch memory at their definition; all other inlinable ones are computed at their uses. A
// tile gets scratch memory if
//
//   - it is a load that cannot stay a view of memory;
//   - recomputing it is expensive: it has several readers, is used in a loop, or is broadcast to several elements
//     (except cheap halves of a joined pair);
//   - a later tile uses it at so many positions that computing it again for each takes several times as long;
//   - its reader needs it in memory: the left operand of a product, or a `print`;
//   - it is a tile transposed block by block (ManyRows.cpp), or an expensive operand of one;
//   - its computation has the largest cost that a nest may have (Group.h).
//
// A reshape keeps the order of elements. If the row length divides the vector length, or is a multiple of it, vectors
// of its result are vectors of its source, or shuffles of a few. Otherwise the source is copied with contiguous rows
// (`cpu.dense`), so that all vectors of the result are contiguous. No copy is made if the result is only stored along
// the source's rows. Tiles in scratch memory with rows narrower than a vector have that layout, too (NarrowRows.cpp).
//
// Elementwise operations on columns (64, 1) are computed as rows (64), so that vectors have many rows.
//
// Costs are in native operations per vector: 1 for arithmetic and loads, more for divisions and functions.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/analysis/TileUses.h"
#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/Group.h"
#include "lowering/cpu/Lanes.h"
#include "lowering/cpu/Recomputation.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_PLACETILES
#include "lowering/cpu/Passes.h.inc"

/// The cost model. A tile whose cost per element (costOf) reaches a limit gets scratch memory instead of being
/// recomputed. `kiln-bench layernorm` measures kernels of many tiles, `kiln-bench token` those of a few rows.
static constexpr struct {
  int64_t severalReaders = 6; // minimum cost if several operations read the tile
  int64_t insideLoop = 3;     // minimum cost if a reader is in a deeper loop
  int64_t broadcastOver = 3;  // minimum cost if a broadcast repeats the tile
  int64_t copied = 8;         // cost of scratch memory; also the maximum number of repetitions that count
  int64_t shared = 24;        // minimum cost if a tile in scratch memory and other tiles are computed from the tile
  int64_t transposed = 4;     // maximum cost of a tile that is recomputed while it is transposed block by block
} placementLimits;

namespace {

/// A summary of readersOf(value).
struct Readers {
  Operation *one = nullptr; // one of them
  bool several = false;
  bool inEpilogues = true; // all of them
  int64_t loops = 0;       // around the innermost reader

  void add(const Readers &others) {
    several |= others.several || (one && others.one && one != others.one);
    one = one ? one : others.one;
    inEpilogues &= others.inEpilogues;
    loops = std::max(loops, others.loops);
  }
};

struct Placement {
  int64_t lanes = 0; // lanes of a vector of 32-bit elements
  DenseSet<Value> inScratch;
  DenseSet<Value> fromPlace; // tiles that are computed from positions, scalars and constants
  DenseMap<Value, int64_t> costs;
  DenseMap<Value, Readers> readers;
  DenseSet<Operation *> epilogues; // stores fused into a product

  static int64_t loopsAround(Operation *op) {
    int64_t loops = 0;
    while ((op = op->getParentOp()))
      loops += isa<LoopLikeOpInterface>(op);
    return loops;
  }

  /// Finds the readers of a value; its users were visited before.
  void findReaders(Value value) {
    Readers found;
    for (Operation *user : value.getUsers())
      if (isInlinable(user) && !user->hasAttr("cpu.dense"))
        found.add(readers.lookup(user->getResult(0)));
      else
        found.add({user, false, epilogues.contains(user), loopsAround(user)});
    readers[value] = found;
  }

  int64_t costOf(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || inScratch.contains(value))
      return isa<RankedTensorType>(value.getType()) ? 1 : 0;
    if (isLoad(op))
      return 1;
    if (!isInlinable(op))
      return 1;
    auto known = costs.find(value);
    if (known != costs.end())
      return known->second;
    int64_t cost = isElementwise(op) ? cpu::costOf(op) : 0;
    for (Value operand : op->getOperands())
      cost += costOf(operand);
    return costs[value] = std::min<int64_t>(cost, 1000);
  }

  /// Whether a nest for `tile` alone has the largest allowed cost. Each operation is counted once, unlike in costOf.
  bool fillsNest(Value tile) const {
    int64_t cost = 0;
    DenseSet<Value> seen;
    SmallVector<Value> work = {tile};
    while (!work.empty() && cost < longestNest) {
      const Value value = work.pop_back_val();
      Operation *const op = value.getDefiningOp();
      if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second)
        continue;
      if (!op || inScratch.contains(value) || !(isLoad(op) || isInlinable(op))) {
        ++cost;
        continue;
      }
      if (isLoad(op))
        cost += cast<tile::AccessOp>(op).getIndexRank() == 0 ? 1 : addressed;
      else if (isElementwise(op))
        cost += cpu::costOf(op);
      llvm::append_range(work, op->getOperands());
    }
    return cost >= longestNest;
  }

  /// Whether all elements of a row of `tile` are equal.
  static bool isOnePerRow(Value tile) {
    SmallVector<Value> work = {tile};
    llvm::SmallDenseSet<Value> seen;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      const auto shape = tile::shapeOf(value.getType());
      if (shape.empty() || shape.back() == 1 || !seen.insert(value).second)
        continue;
      if (!op || !(isElementwise(op) || isa<tile::BroadcastOp>(op)))
        return false;
      llvm::append_range(work, op->getOperands());
    }
    return true;
  }

  /// Whether readers select whole broadcast rows by position, as in a concatenation. Then only selected rows are
  /// computed, with a branch for each vector (Evaluator.cpp).
  bool isChosen(tile::BroadcastOp broadcast) const {
    const auto from = broadcast.getSource().getType().getShape(), to = broadcast.getType().getShape();
    return from.back() == to.back() && to.back() % lanes == 0 &&
           llvm::all_of(broadcast->getUsers(), [](Operation *user) {
             auto select = dyn_cast<arith::SelectOp>(user);
             return select && followsFromPlace(select.getCondition()) && isOnePerRow(select.getCondition());
           });
  }

  /// The largest number of copies of an element that `user` broadcasts; 1 if it does not broadcast.
  int64_t copiesBy(Operation *user) const {
    int64_t copies = 1;
    if (auto reshape = dyn_cast<tile::ReshapeOp>(user))
      for (Operation *next : reshape->getUsers())
        copies = std::max(copies, copiesBy(next));
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(user); broadcast && !isChosen(broadcast))
      if (const int64_t elements = broadcast.getSource().getType().getNumElements())
        copies = broadcast.getType().getNumElements() / elements;
    return copies;
  }

  /// Whether `tile` is a load that stays a view, up to extents of 1, so that a product reads it directly.
  static bool liesInView(Value tile) {
    if (auto reshape = tile.getDefiningOp<tile::ReshapeOp>())
      if (differsByUnits(reshape.getSource().getType(), tile.getType()))
        tile = reshape.getSource();
    auto load = tile.getDefiningOp<tile::LoadOp>();
    return load && load->hasAttr("cpu.view");
  }

  static Value beforeWidening(Value tile) {
    Operation *op = tile.getDefiningOp();
    return isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp>(op) ? op->getOperand(0) : tile;
  }

  /// Whether loaded numbers are widened, which costs as much as their later use.
  static bool isWidened(Operation *op) {
    if (!isa<arith::ExtFOp>(op))
      return false;
    Value narrow = op->getOperand(0);
    while (auto move = narrow.getDefiningOp<tile::MoveOp>())
      narrow = move.getMoved();
    return isLoad(narrow.getDefiningOp());
  }

  bool wants(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto dot = dyn_cast<tile::DotOp>(user))
      return (use.getOperandNumber() == 0 && !liesInView(use.get())) ||
             (use.getOperandNumber() == 2 && !matchPattern(use.get(), m_AnyZeroFloat()) &&
              !matchPattern(use.get(), m_Zero()) && tile::shapeOf(dot.getType()).back() % 16 != 0);
    if (isa<tile::TransposeOp>(user)) // a product packs a transposed left operand directly
      return !liesInView(beforeWidening(use.get())) && llvm::any_of(user->getUses(), [&](OpOperand &next) {
        return isa<tile::DotOp>(next.getOwner()) && next.getOperandNumber() == 0;
      });
    if (isa<tile::TakeOp>(user)) // its elements are read in any order
      return use.getOperandNumber() == 0;
    return isa<tile::PrintOp>(user);
  }

  /// Whether vectors of `tile` along its last dimension are contiguous in a load or in scratch memory.
  bool hasRowsInMemory(Value tile) const {
    SmallVector<Value> work = {tile};
    llvm::SmallDenseSet<Value> seen;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!seen.insert(value).second)
        continue;
      if (!op || inScratch.contains(value) || (!isLoad(op) && !isInlinable(op)))
        return true;
      if (isLoad(op)) {
        auto load = cast<tile::AccessOp>(op);
        const auto strides = cast<MemRefType>(load.getView().getType()).getStridesAndOffset().first;
        if (load.getIndexRank() == 0 && !strides.empty() && strides.back() == 1)
          return true;
      } else if (!isa<tile::TransposeOp>(op)) {
        const int64_t row = tile::shapeOf(value.getType()).back();
        llvm::copy_if(op->getOperands(), std::back_inserter(work), [&](Value operand) {
          const auto from = tile::shapeOf(operand.getType());
          return !from.empty() && from.back() == row;
        });
      }
    }
    return false;
  }

  /// Whether a tile is transposed, directly or through elementwise operations.
  static bool isTransposed(Value tile) {
    return !walkUses(tile, [](OpOperand &use) {
      Operation *user = use.getOwner();
      return isa<tile::TransposeOp>(user) ? Walk::giveUp : isElementwise(user) ? Walk::follow : Walk::leave;
    });
  }

  /// Whether a tile is transposed block by block: its vectors are strided in memory, and it is not transposed back. No
  /// product reads it, because products transpose their operands themselves, and no store fused into a product.
  bool isTransposed(tile::TransposeOp op) const {
    const auto order = op.getPermutation();
    const auto last = static_cast<int64_t>(order.size()) - 1;
    const auto shape = op.getType().getShape();
    if (order[last] == last || shape[last] < lanes || op.getType().getElementType().isInteger(1) ||
        shape[llvm::find(order, last) - order.begin()] < lanes || !hasRowsInMemory(op.getSource()) ||
        isTransposed(op.getResult()))
      return false;
    return llvm::none_of(readersOf(op.getResult()), [&](const Reader &reader) {
      Operation *user = reader.operand->getOwner();
      return isa<tile::DotOp>(user) || epilogues.contains(user);
    });
  }

  /// Whether a tile in scratch memory has contiguous rows: they are narrow, many, and read only by nests.
  bool isNarrow(Operation *op) const {
    const Machine machine{.vectorBits = 32 * lanes};
    const auto type = cast<RankedTensorType>(op->getResult(0).getType());
    const int64_t width = type.getRank() < 2 ? 1 : type.getShape().back();
    return isElementwise(op) && width > 1 && width <= machine.widestStride() &&
           type.getNumElements() >= machine.fewestOfNarrowRows() &&
           llvm::all_of(readersOf(op->getResult(0)), [](const Reader &reader) {
             return isa<tile::StoreOp, tile::ReduceOp>(reader.operand->getOwner());
           });
  }

  bool shouldPlace(Value value) {
    Operation *op = value.getDefiningOp();
    if (isLoad(op))
      return !op->hasAttr("cpu.view") || (cast<tile::AccessOp>(op).getIndexRank() > 0 && fillsNest(value));
    if (!isInlinable(op) || op->hasTrait<OpTrait::ConstantLike>() || op->use_empty())
      return false;
    if (auto transpose = dyn_cast<tile::TransposeOp>(op))
      return isTransposed(transpose); // otherwise the tile below it is in scratch memory
    for (OpOperand &use : op->getUses())
      if (wants(use))
        return true;
    SmallPtrSet<Operation *, 4> users;
    for (Operation *user : op->getUsers())
      users.insert(user);
    const Readers read = readers.lookup(value);
    int64_t cost = costOf(value);
    for (Operation *user : users) // code is emitted for each row of a block
      if (auto transpose = dyn_cast<tile::TransposeOp>(user);
          transpose && cost > placementLimits.transposed && isTransposed(transpose))
        return true;
    // A longer tile would need too much scratch memory. Its loop is compiled slowly.
    constexpr int64_t maxElements = 1 << 20;
    if (cost >= longestNest / addressed && fillsNest(value) &&
        cast<RankedTensorType>(value.getType()).getNumElements() <= maxElements)
      return true;
    if (cost >= placementLimits.severalReaders && users.size() > 1 && read.several && !read.inEpilogues)
      return true;
    for (Operation *user : users) {
      const int64_t copies = std::min(copiesBy(user), placementLimits.copied);
      if (cost >= placementLimits.broadcastOver && cost * (copies - 1) >= placementLimits.copied)
        return true;
      if (isWidened(op) && copies == placementLimits.copied && !read.inEpilogues)
        return true;
    }
    return cost >= placementLimits.insideLoop && read.loops > loopsAround(op);
  }

  void place(Operation *op) {
    inScratch.insert(op->getResult(0));
    op->removeAttr("cpu.view");
    op->setAttr("cpu.scratch", UnitAttr::get(op->getContext()));
    if (isNarrow(op))
      op->setAttr("cpu.dense", UnitAttr::get(op->getContext()));
    placeShared(op->getResult(0));
  }

  /// Places the tiles that `tile`, which is in scratch memory, and later tiles would both compute at great cost.
  void placeShared(Value tile) {
    llvm::SetVector<Value> inside;
    inside.insert(tile);
    const auto operandsOf = [](Value value) {
      return llvm::make_filter_range(value.getDefiningOp()->getOperands(),
                                     [](Value operand) { return isa<RankedTensorType>(operand.getType()); });
    };
    for (size_t next = 0; next < inside.size(); ++next) // grows
      for (Value operand : operandsOf(inside[next]))
        if (Operation *op = operand.getDefiningOp(); op && isInlinable(op) && !inScratch.contains(operand))
          inside.insert(operand);
    SmallVector<Value> work = {tile};
    DenseSet<Value> seen;
    while (!work.empty())
      for (Value operand : operandsOf(work.pop_back_val())) {
        if (!inside.contains(operand) || !seen.insert(operand).second)
          continue;
        const bool isShared = llvm::any_of(operand.getUsers(), [&](Operation *user) {
          return !isInlinable(user) || !inside.contains(user->getResult(0));
        });
        if (!isShared || isa<tile::TransposeOp>(operand.getDefiningOp()) || costOf(operand) < placementLimits.shared ||
            readers.lookup(operand).inEpilogues) {
          work.push_back(operand);
          continue;
        }
        place(operand.getDefiningOp());
        costs.clear();
      }
  }

  /// Adds a tile that follows from its positions to `fromPlace`; its operands were seen before.
  void findFromPlace(Operation *op) {
    if (isInlinable(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
          return !isa<RankedTensorType>(operand.getType()) || fromPlace.contains(operand);
        }))
      fromPlace.insert(op->getResult(0));
  }

  /// Places the tiles that `tile` would compute at too many positions.
  void placeRecomputed(Value tile) {
    while (Value repeated = mostRecomputed(tile, inScratch, fromPlace, [&](Value value) { return costOf(value); })) {
      place(repeated.getDefiningOp());
      costs.clear();
    }
  }
};

/// Whether other operands of a product's stores can be recomputed there. A tile in scratch memory would have its own
/// nest between the product and the stores.
bool isComputedOnTheSpot(Operation *producer, Value sums) {
  SmallVector<Value> work;
  for (tile::StoreOp store : storesOf(sums))
    work.push_back(store.getValue());
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (value == sums || !op || op->getBlock() != producer->getBlock() || op->isBeforeInBlock(producer))
      continue;
    if (op->hasAttr("cpu.scratch"))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

struct PlaceTiles : impl::PlaceTilesBase<PlaceTiles> {
  using PlaceTilesBase::PlaceTilesBase;

  /// Copies the source of each reshape whose vectors would not be contiguous.
  void copyDense() {
    getOperation().walk([&](tile::ReshapeOp reshape) {
      const int64_t lanes = vectorBits / 32, widestStride = Machine{.vectorBits = vectorBits}.widestStride();
      if (reshape->use_empty() || !isa<RankedTensorType>(reshape.getType()) || keepsVectors(reshape, lanes))
        return;
      if (auto store = dyn_cast<tile::StoreOp>(*reshape->user_begin());
          store && (placesOfMerged(store, lanes) || findJoinedRows(store, lanes, widestStride)))
        return;
      OpBuilder builder(reshape);
      Value source = reshape.getSource();
      auto copy = tile::ReshapeOp::create(builder, reshape.getLoc(), source.getType(), source);
      copy->setAttr("cpu.scratch", builder.getUnitAttr());
      copy->setAttr("cpu.dense", builder.getUnitAttr());
      reshape.getSourceMutable().assign(copy);
    });
  }

  /// Rewrites elementwise operations of shape (…, R, 1) on tiles of shape (…, R) to shape (…, R).
  void squeezeColumns() {
    getOperation().walk([&](Operation *op) {
      const auto shape = op->getNumResults() == 1 ? tile::shapeOf(op->getResult(0).getType()) : ArrayRef<int64_t>();
      if (!isElementwise(op) || shape.size() < 2 || shape.back() != 1 || shape[shape.size() - 2] == 1)
        return;
      const auto rows = shape.drop_back();
      const auto below = [&](Value operand) {
        auto reshape = operand.getDefiningOp<tile::ReshapeOp>();
        return reshape && tile::shapeOf(reshape.getSource().getType()) == rows ? reshape.getSource() : Value();
      };
      const auto isTile = [](Value operand) { return isa<RankedTensorType>(operand.getType()); };
      if (llvm::none_of(op->getOperands(), below) || llvm::any_of(op->getOperands(), [&](Value operand) {
            return isTile(operand) && isa<BlockArgument>(operand); // stays in its buffer
          }))
        return;
      OpBuilder builder(op);
      const auto squeezed = [&](Value operand) -> Value {
        if (!isTile(operand))
          return operand;
        if (Value source = below(operand))
          return source;
        return tile::ReshapeOp::create(builder, op->getLoc(),
                                       RankedTensorType::get(rows, getElementTypeOrSelf(operand.getType())), operand);
      };
      const auto operands = llvm::map_to_vector(op->getOperands(), squeezed);
      Operation *row = builder.insert(op->clone());
      row->setOperands(operands);
      row->getResult(0).setType(RankedTensorType::get(rows, getElementTypeOrSelf(op->getResult(0).getType())));
      op->replaceAllUsesWith(
          tile::ReshapeOp::create(builder, op->getLoc(), op->getResult(0).getType(), row->getResult(0)));
      op->erase();
    });
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    squeezeColumns();
    copyDense();
    Placement placement;
    placement.lanes = vectorBits / 32;
    forEpilogues(function, [&](Operation *, Value sums) {
      for (tile::StoreOp store : storesOf(sums))
        placement.epilogues.insert(store);
      return true;
    });
    function.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) { // users before their operands
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType()))
          placement.findReaders(result);
    });
    function.walk([&](Operation *op) { // in program order, because costs depend on earlier decisions
      if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
        return;
      placement.findFromPlace(op);
      placement.placeRecomputed(op->getResult(0));
      if (op->hasAttr("cpu.dense")) {
        placement.inScratch.insert(op->getResult(0));
        placement.placeShared(op->getResult(0));
      } else if (placement.shouldPlace(op->getResult(0))) {
        placement.place(op);
      }
    });
    forEpilogues(function, isComputedOnTheSpot);
  }

  /// Calls `keep` for each product or loop and the results read by its fused stores; removes those for which it is
  /// false.
  static void forEpilogues(func::FuncOp function, function_ref<bool(Operation *producer, Value sums)> keep) {
    function.walk([&](Operation *op) {
      auto marked = op->getAttrOfType<DenseBoolArrayAttr>("cpu.epilogue");
      if (!marked)
        return;
      SmallVector<bool> kept;
      for (auto [index, fused] : llvm::enumerate(marked.asArrayRef()))
        kept.push_back(fused && keep(op, op->getResult(index)));
      if (llvm::is_contained(kept, true))
        op->setAttr("cpu.epilogue", DenseBoolArrayAttr::get(op->getContext(), kept));
      else
        op->removeAttr("cpu.epilogue");
    });
  }
};

} // namespace
} // namespace kiln::lowering::cpu

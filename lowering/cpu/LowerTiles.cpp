// Lowers tiles to loops over native vectors and scratch memory: the traversal of a kernel.
//
// Stores, reductions and tiles in scratch memory become loop nests (Loops.cpp); products have their own (LowerDot.cpp).
// All other tiles are computed where their elements are used (Evaluator.cpp). A carried tile of a loop has one buffer,
// which the yield updates:
//
//     %s = tile.reduce sum %x axis 1      // a loop nest; %x, a load, is read in it
//     %y = arith.mulf %x, %b              // nothing: computed in the store's nest
//     tile.store %y, %v[%n]               // a loop nest, shared with the reduction when both have one shape

#include "lowering/cpu/LowerTiles.h"
#include "lowering/Passes.h"
#include "lowering/analysis/LoopCarried.h"
#include "lowering/cpu/Group.h"
#include "lowering/cpu/Lanes.h"
#include "lowering/tile/Atomics.h"
#include "lowering/tile/Console.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_LOWERTILES
#include "lowering/cpu/Passes.h.inc"

namespace {

bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
int64_t lastAxisOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getRank() - 1; }

/// A loop-carried accumulator: `init` if it is `empty` (i1). Not loop-carried if `empty` is null.
struct EmptySum {
  Value empty, tile, init;
};

class TileLowering {
public:
  TileLowering(func::FuncOp function, Machine machine) : function(function), machine(machine), builder(function) {}

  LogicalResult run() {
    if (failed(lowerBlock(function.getBody().front())))
      return failure();
    eraseTiles();
    return success();
  }

private:
  // --- Blocks -------------------------------------------------------------------------------------------------------

  /// Moves pure scalar operations and inlinable ones up to their operands, so that nests become adjacent. Moving
  /// invalidates the block's operation order. So operations that stay are compared by numbers, and a moved one has the
  /// number of the operation it follows.
  static void hoistPure(Block &block) {
    DenseMap<Operation *, unsigned> numbers;
    for (Operation &op : block)
      numbers[&op] = static_cast<unsigned>(numbers.size() + 1);
    const auto isBefore = [&](Operation *a, Operation *b) {
      const unsigned x = numbers.lookup(a), y = numbers.lookup(b);
      return x != y ? x < y : a != b && a->isBeforeInBlock(b);
    };
    for (Operation &op : llvm::make_early_inc_range(block)) {
      bool movable = op.getNumRegions() == 0 && isMemoryEffectFree(&op) && op.getNumResults() == 1 &&
                     (isScalar(&op) || isInlinable(&op)) && !op.hasTrait<OpTrait::IsTerminator>();
      if (!movable)
        continue;
      Operation *after = nullptr;
      for (Value operand : op.getOperands())
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == &block)
          if (!after || isBefore(after, def))
            after = def;
      if (op.getPrevNode() == after)
        continue;
      numbers[&op] = after ? numbers.lookup(after) : 0;
      if (after)
        op.moveAfter(after);
      else
        op.moveBefore(&block, block.begin());
    }
  }

  static bool isScalar(Operation *op) {
    return llvm::none_of(op->getOperands(), isTile) && llvm::none_of(op->getResults(), isTile);
  }

  LogicalResult lowerBlock(Block &block) {
    hoistPure(block);
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (Operation *op : ops) {
      if (fused.contains(op)) {
        flush();
        if (failed(storeEmptySum(cast<tile::StoreOp>(op))))
          return failure();
      } else if (auto root = findRoot(op)) {
        if (!group.empty() && !group.canJoin(*root))
          flush();
        group.add(*root);
      } else if (isVirtual(op)) {
        continue;
      } else if (failed(lowerOp(op))) {
        return failure();
      }
    }
    flush();
    return success();
  }

  bool isVirtual(Operation *op) {
    if (isa<tile::CheckOp, tile::PrintOp>(op)) // scalars, too
      return false;
    return isScalar(op) && op->getNumRegions() == 0 ? true : isInlinable(op) || isLoad(op);
  }

  Value allocate(Operation *before, Type tile) {
    builder.setInsertionPoint(before);
    return allocateBuffer(builder, before->getLoc(), tile, machine);
  }

  /// The nest of `op`, if it needs one.
  std::optional<Root> findRoot(Operation *op) {
    if (auto store = dyn_cast<tile::StoreOp>(op); store && !buffers.contains(store.getValue())) {
      auto places = placesOfMerged(store, machine.lanes());
      auto joined = findJoinedRows(store, machine.lanes(), machine.widestStride());
      if (places || joined) {
        Root root{Root::Kind::store, op, store.getValue().getDefiningOp()->getOperand(0), {}, -1};
        root.places = std::move(places);
        root.joined = std::move(joined);
        return root;
      }
    }
    if (auto access = dyn_cast<tile::AccessOp>(op); access && access.isStore())
      return Root{Root::Kind::store, op, access.getTile(), {}, -1};
    if (auto check = dyn_cast<tile::CheckOp>(op); check && isTile(check.getCondition()))
      return Root{Root::Kind::check, op, check.getCondition(), {}, lastAxisOf(check.getCondition())};
    if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      Value buffer = isTile(reduce.getResult()) ? allocate(anchor(op), reduce.getType()) : Value();
      return Root{Root::Kind::reduce, op, reduce.getSource(), buffer, static_cast<int64_t>(reduce.getAxis())};
    }
    if (auto scan = dyn_cast<tile::ScanOp>(op))
      return Root{Root::Kind::scan, op, scan.getSources()[0], {}, static_cast<int64_t>(scan.getAxis())};
    if (op->getNumResults() == 1 && op->hasAttr("cpu.scratch")) {
      builder.setInsertionPoint(anchor(op));
      auto tile = cast<RankedTensorType>(op->getResult(0).getType());
      Value buffer = op->hasAttr("cpu.dense") ? allocateDense(builder, op->getLoc(), tile, machine)
                                              : allocateBuffer(builder, op->getLoc(), tile, machine);
      return Root{Root::Kind::place, op, op->getResult(0), buffer, -1};
    }
    return std::nullopt;
  }

  /// A group's buffers are allocated before its first member, where the nest is emitted.
  Operation *anchor(Operation *op) { return group.empty() ? op : group.roots.front().op; }

  void flush() {
    if (group.empty())
      return;
    Operation *before = group.roots.front().op;
    for (Root &root : group.roots)
      if (root.isScan())
        placeScan(root, before);
    emitLoops(group.roots, before, machine, buffers, &read);
    for (const Root &root : group.roots) {
      if (root.kind == Root::Kind::place || root.buffer)
        buffers[root.op->getResult(0)] = root.buffer;
      for (auto [result, buffer, last] : llvm::zip(root.op->getResults(), root.buffers, root.lasts)) {
        if (buffer)
          buffers[result] = buffer;
        for (tile::ExtractOp extract : Group::lastElements(result))
          buffers[extract.getResult()] = last;
      }
    }
    group.clear();
  }

  /// Allocates scratch memory for results of a scan that are read after its nest.
  void placeScan(Root &root, Operation *before) {
    for (OpResult result : root.op->getResults()) {
      auto lasts = Group::lastElements(result);
      const bool isWhole = lasts.empty() && group.isReadAfter(result);
      root.buffers.push_back(isWhole ? allocate(before, result.getType()) : Value());
      root.lasts.push_back(lasts.empty() ? Value() : allocate(before, lasts.front().getType()));
    }
  }

  // --- Operations that are no plain nest ----------------------------------------------------------------------------

  LogicalResult lowerOp(Operation *op) {
    flush();
    if (lowerSorts(op, machine, buffers))
      return success();
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      Destination to = destinations.lookup(dot.getResult());
      if (runsStores(dot, 0)) {
        to = {.stores = storesOf(dot.getResult()), .tile = dot.getResult()};
        for (tile::StoreOp store : to.stores)
          fused[store] = {};
      } else if (!to.buffer) {
        to.buffer = allocate(op, dot.getType());
      }
      lowerDot(dot, to, machine, buffers);
      buffers[dot.getResult()] = to.buffer;
      return success();
    }
    if (const std::optional<LoopCarried> loop = LoopCarried::of(op))
      return lowerLoop(*loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return lowerIf(branch);
    if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) { // to a scalar
      Evaluator e(op->getLoc(), machine, buffers);
      e.levels.push_back({op->getBlock(), op});
      Index index(tile::shapeOf(reshape.getSource().getType()).size());
      llvm::fill(index, e.fixed(0));
      reshape.getResult().replaceAllUsesWith(e.at(reshape.getSource(), index));
      return success();
    }
    if (auto access = dyn_cast<tile::AccessOp>(op); access && access.isAtomic())
      return lowerAtomic(access);
    if (auto print = dyn_cast<tile::PrintOp>(op))
      return lowerPrint(print);
    if (auto check = dyn_cast<tile::CheckOp>(op))
      return lowerCheck(check);
    return op->emitOpError("is not expected among tiles on the CPU");
  }

  // --- Stores that run inside a product -----------------------------------------------------------------------------

  /// Whether the stores that read result `index` of a product or loop run inside the product.
  static bool runsStores(Operation *producer, unsigned index) {
    auto marked = producer->getAttrOfType<DenseBoolArrayAttr>("cpu.epilogue");
    return marked && marked[index];
  }

  /// The loop `fresh` carries an accumulator in `buffer` with initial value zero: `dot` adds to it, and runs the stores
  /// in the last iteration.
  void runStores(scf::ForOp loop, unsigned index, scf::ForOp fresh, Value buffer) {
    Location loc = loop.getLoc();
    builder.setInsertionPoint(fresh);
    Value empty =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, fresh.getUpperBound(), fresh.getLowerBound());
    builder.setInsertionPointToStart(fresh.getBody());
    Value at = fresh.getInductionVar();
    Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, at, fresh.getLowerBound());
    Value left = arith::SubIOp::create(builder, loc, fresh.getUpperBound(), at);
    Value last = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, left, fresh.getStep());
    auto dot = fresh.getBody()->getTerminator()->getOperand(index).getDefiningOp<tile::DotOp>();
    Value tile = loop.getResult(index);
    destinations[dot.getResult()] = {buffer, true, storesOf(tile), tile, first, last};
    for (tile::StoreOp store : storesOf(tile))
      fused[store] = {empty, tile, loop.getInitArgs()[index]};
  }

  /// Handles stores fused into a loop's product if the loop has no iterations: they store the initial value.
  LogicalResult storeEmptySum(tile::StoreOp store) {
    EmptySum sum = fused.lookup(store);
    if (!sum.empty)
      return success();
    builder.setInsertionPoint(store);
    auto branch = scf::IfOp::create(builder, store.getLoc(), sum.empty);
    builder.setInsertionPointToStart(branch.thenBlock());
    IRMapping known;
    known.map(sum.tile, sum.init);
    std::function<Value(Value)> replaced = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (known.contains(value) || !op || !isInlinable(op))
        return known.lookupOrDefault(value);
      bool changes = false;
      for (Value operand : op->getOperands())
        changes |= replaced(operand) != operand;
      return changes ? builder.clone(*op, known)->getResult(0) : value;
    };
    replaced(store.getValue());
    builder.clone(*store, known);
    return lowerBlock(*branch.thenBlock());
  }

  /// The positions of all elements of `shape` as scalars, innermost fastest.
  void forEachElement(Evaluator &e, ArrayRef<int64_t> shape, function_ref<void(const Index &)> body) {
    Index index;
    std::function<void(size_t)> nest = [&](size_t axis) {
      if (axis == shape.size())
        return body(index);
      e.loop(e.constantIndex(0), e.constantIndex(shape[axis]), 1, [&](Ix position) {
        index.push_back(position);
        nest(axis + 1);
        index.pop_back();
      });
    };
    nest(0);
  }

  LogicalResult lowerAtomic(tile::AccessOp op) {
    const RankedTensorType type = op.getTile().getType();
    Value buffer = op->use_empty() ? Value() : allocate(op, type);
    Evaluator e(op.getLoc(), machine, buffers);
    e.levels.push_back({op->getBlock(), op});
    forEachElement(e, type.getShape(), [&](const Index &index) {
      const auto values = llvm::map_to_vector<2>(valuesOfAtomic(op), [&](Value tile) { return e.at(tile, index); });
      Value old = e.atomic(values, op, index);
      if (buffer)
        e.storeBuffer(old, buffer, index);
    });
    if (buffer)
      buffers[op->getResult(0)] = buffer;
    return success();
  }

  LogicalResult lowerPrint(tile::PrintOp op) {
    auto shape = tile::shapeOf(op.getValue().getType());
    Type element = getElementTypeOrSelf(op.getValue().getType());
    auto dense = MemRefType::get(shape, element.isInteger(1) ? builder.getI8Type() : element);
    builder.setInsertionPoint(op);
    Value data = memref::AllocaOp::create(builder, op.getLoc(), dense, builder.getI64IntegerAttr(64));
    Evaluator e(op.getLoc(), machine, buffers);
    e.levels.push_back({op->getBlock(), op});
    forEachElement(e, shape, [&](const Index &index) { e.storeBuffer(e.at(op.getValue(), index), data, index); });
    builder.setInsertionPoint(op);
    emitPrint(builder, op, data);
    return success();
  }

  /// Lowers the check of a scalar; the check of a tile is a root.
  LogicalResult lowerCheck(tile::CheckOp op) {
    builder.setInsertionPoint(op);
    Value yes = arith::ConstantOp::create(builder, op.getLoc(), builder.getBoolAttr(true));
    Value fails = arith::XOrIOp::create(builder, op.getLoc(), op.getCondition(), yes);
    scf::IfOp::create(builder, op.getLoc(), fails, [&](OpBuilder &b, Location loc) {
      emitCheckFailed(b, op, arith::ConstantIntOp::create(b, loc, 0, 64));
      scf::YieldOp::create(b, loc);
    });
    return success();
  }

  // --- Loops and branches -----------------------------------------------------------------------------------------

  void placeInto(Value value, Value buffer, Operation *before) {
    if (buffers.lookup(value) == buffer)
      return;
    emitLoops(Root{Root::Kind::place, before, value, buffer, -1}, before, machine, buffers);
  }

  LogicalResult lowerLoop(const LoopCarried &loop) {
    auto inPlace = loop.op->getAttrOfType<DenseBoolArrayAttr>("cpu.in_place");
    SmallVector<Value> inits, carriedBuffers;
    for (auto [operand, argument, result] : llvm::zip_equal(loop.inits, loop.arguments, loop.results)) {
      const Value init = operand.get();
      if (!isTile(init)) {
        inits.push_back(init);
        carriedBuffers.push_back({});
        continue;
      }
      Value buffer = targets.lookup(result);
      if (!buffer && runsStores(loop.op, carriedBuffers.size())) {
        buffer = allocate(loop.op, panelType(init.getType(), machine));
      } else if (!buffer) {
        buffer = allocate(loop.op, init.getType());
        placeInto(init, buffer, loop.op);
      }
      carriedBuffers.push_back(buffer);
      buffers[argument] = buffer;
    }
    const LoopCarried fresh = loop.withCarried(builder, inits);
    size_t scalar = 0;
    for (auto [index, argument] : llvm::enumerate(loop.arguments)) {
      if (!isTile(argument)) {
        argument.replaceAllUsesWith(fresh.arguments[scalar]);
        loop.results[index].replaceAllUsesWith(fresh.results[scalar++]);
      } else if (inPlace && inPlace[index]) {
        Value yielded = fresh.yielded[index].get();
        targets[yielded] = carriedBuffers[index];
        destinations[yielded] = {.buffer = carriedBuffers[index], .holdsAccumulator = true};
        if (runsStores(loop.op, index))
          runStores(cast<scf::ForOp>(loop.op), index, cast<scf::ForOp>(fresh.op), carriedBuffers[index]);
      }
    }
    if (failed(lowerBlock(*fresh.body)))
      return failure();
    updateCarried(fresh.body->getTerminator(), carriedBuffers);
    for (auto [result, buffer] : llvm::zip(loop.results, carriedBuffers))
      if (buffer)
        buffers[result] = buffer;
    return success();
  }

  /// Writes the yielded tiles to the loop's buffers, each after the others have read its old value.
  void updateCarried(Operation *yield, ArrayRef<Value> carriedBuffers) {
    struct Pending {
      Value value, buffer;
      SmallVector<std::pair<Value, bool>> reads; // buffers, and whether element by element
    };
    SmallVector<Pending> pending;
    const size_t others = yield->getNumOperands() - carriedBuffers.size(); // the condition of a while loop
    SmallVector<Value> scalars(yield->getOperands().take_front(others));
    for (auto [value, buffer] : llvm::zip_equal(yield->getOperands().drop_front(others), carriedBuffers)) {
      if (!buffer) {
        scalars.push_back(value);
        continue;
      }
      if (buffers.lookup(value) == buffer)
        continue;
      const Reads reads = group.collectReads(value);
      Pending entry{value, buffer, {}};
      for (auto &[tile, same] : reads.buffered)
        entry.reads.push_back({buffers.lookup(tile), same});
      pending.push_back(entry);
    }
    auto readBy = [](const Pending &entry, Value buffer, bool butSame) {
      return llvm::any_of(entry.reads, [&](auto &read) { return read.first == buffer && !(butSame && read.second); });
    };
    auto isSafe = [&](size_t i) {
      for (size_t j = 0; j < pending.size(); ++j)
        if (readBy(pending[j], pending[i].buffer, /*butSame=*/i == j))
          return false;
      return true;
    };
    while (!pending.empty()) {
      size_t next = 0;
      while (next < pending.size() && !isSafe(next))
        ++next;
      if (next < pending.size()) {
        placeInto(pending[next].value, pending[next].buffer, yield);
        pending.erase(pending.begin() + next);
        continue;
      }
      // A cycle: one value is computed into a temporary buffer.
      Pending &first = *llvm::find_if(pending, [](const Pending &entry) { return !entry.reads.empty(); });
      Value aside = allocate(yield, first.value.getType());
      placeInto(first.value, aside, yield);
      builder.setInsertionPoint(yield);
      Value copy = tile::ReshapeOp::create(builder, yield->getLoc(), first.value.getType(), first.value);
      buffers[copy] = aside;
      first = {copy, first.buffer, {}};
    }
    builder.setInsertionPoint(yield);
    scf::YieldOp::create(builder, yield->getLoc(), scalars);
    yield->erase();
  }

  LogicalResult lowerIf(scf::IfOp branch) {
    SmallVector<Value> resultBuffers;
    SmallVector<Type> scalarTypes;
    for (Value result : branch.getResults()) {
      resultBuffers.push_back(isTile(result) ? allocate(branch, result.getType()) : Value());
      if (!isTile(result))
        scalarTypes.push_back(result.getType());
    }
    builder.setInsertionPoint(branch);
    bool hasElse = !branch.getElseRegion().empty();
    auto fresh = scf::IfOp::create(builder, branch.getLoc(), scalarTypes, branch.getCondition(), hasElse);
    for (auto [from, to] : {std::pair<Region *, Region *>{&branch.getThenRegion(), &fresh.getThenRegion()},
                            {&branch.getElseRegion(), &fresh.getElseRegion()}}) {
      if (from->empty())
        continue;
      Block &block = to->front();
      block.clear();
      block.getOperations().splice(block.end(), from->front().getOperations());
      if (failed(lowerBlock(block)))
        return failure();
      Operation *yield = block.getTerminator();
      SmallVector<Value> scalars;
      for (auto [value, buffer] : llvm::zip(yield->getOperands(), resultBuffers)) {
        if (buffer)
          placeInto(value, buffer, yield);
        else
          scalars.push_back(value);
      }
      builder.setInsertionPoint(yield);
      scf::YieldOp::create(builder, yield->getLoc(), scalars);
      yield->erase();
    }
    size_t scalar = 0;
    for (auto [result, buffer] : llvm::zip(branch.getResults(), resultBuffers)) {
      if (buffer)
        buffers[result] = buffer;
      else
        result.replaceAllUsesWith(fresh.getResult(scalar++));
    }
    return success();
  }

  /// Erases the remaining operations on tiles, which have been replaced.
  void eraseTiles() {
    SmallVector<Operation *> dead;
    function.walk([&](Operation *op) {
      bool empty = isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op) &&
                   (op->getRegion(0).empty() || op->getRegion(0).front().empty());
      if (empty || llvm::any_of(op->getOperands(), isTile) || llvm::any_of(op->getResults(), isTile) ||
          isa<tile::CheckOp, tile::PrintOp>(op))
        dead.push_back(op);
    });
    for (Operation *op : dead)
      op->dropAllReferences(); // including the uses of block arguments that are erased with their loop
    for (Operation *op : llvm::reverse(dead))
      op->erase();
  }

  func::FuncOp function;
  const Machine machine;
  OpBuilder builder;
  DenseMap<Value, Value> buffers;            // tiles in scratch memory
  ReadTiles read;                            // loads already read by a nest
  DenseMap<Value, Value> targets;            // tiles to be computed in a loop's buffer
  DenseMap<Value, Destination> destinations; // of products that accumulate in a loop's buffer
  DenseMap<Operation *, EmptySum> fused;     // stores fused into products
  Group group{buffers};                      // roots of the current nest
};

struct LowerTiles : impl::LowerTilesBase<LowerTiles> {
  using LowerTilesBase::LowerTilesBase;

  /// The placement of loads and operands was decided by earlier passes.
  LogicalResult checkDecisions() {
    WalkResult result = getOperation().walk([](Operation *op) -> WalkResult {
      if (isLoad(op) && !op->hasAttr("cpu.view") && !op->hasAttr("cpu.scratch"))
        return op->emitOpError("expected 'cpu.view' or 'cpu.scratch'; run cpu-place-tiles first");
      if (isa<tile::DotOp>(op) && !op->hasAttr("cpu.left"))
        return op->emitOpError("expected 'cpu.left'; run cpu-pack-operands first");
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    if (failed(checkDecisions()))
      return signalPassFailure();
    if (failed(TileLowering(getOperation(), Machine{vectorBits, registers}).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln::lowering::cpu

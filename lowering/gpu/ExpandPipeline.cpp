// Makes the software pipeline that the attributes of a loop, its loads and its products state (Pipeline.h).
//
//     for k:                                        fetch 0 … D−1 into slots 0 … D−1, a group each
//       x = load a[m, k]                            for k:
//       y = convert x         ── becomes ──►          wait for all groups but D−1
//       acc = dot(y, …)                               fetch the tile of D iterations later, a group
//                                                     y = read of the slot
//                                                     acc = dot(y, …)
//                                                   wait for all groups
//
// D is the distance. Every iteration commits a group, of zeros after the last tile, so all groups except the newest
// D − 1 belong to this or earlier iterations. gpu-insert-barriers puts a barrier between the wait and the fetch.
//
// A product of a warpgroup (wgmma) that reads both operands from slots:
//
//     for k:
//       wait for all groups but D−1; barrier
//       acc = multiply slots, acc
//       fetch the tile of D iterations later, a group
//       wait for all products but this one, if it runs on, or for all
//
// A product that reads only its right operand from a slot replaces that operand's read and the dot.
// ScheduleProducts.cpp says when it begins and where it is waited for.
//
// The first fetches for the next tile of a loop over tiles:
//
//     for tile:                                      fetch 0 … D−1 of the first tile
//       fetch 0 … D−1                                for tile:
//       for k: …                  ── becomes ──►       for k: …
//       store acc                                      fetch 0 … D−1 of the next tile
//                                                      store acc

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/Pipeline.h"

#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/tile/AccessRules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

#include <numeric>

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_EXPANDPIPELINE
#include "lowering/gpu/Passes.h.inc"

using simt::LayoutAttr;

namespace {

/// A load whose tile is copied ahead.
struct Staged {
  mutable tile::LoadOp load;
  simt::SharedLayoutAttr slot;
  Value ring;
};

/// One loop.
class Pipeline {
public:
  explicit Pipeline(scf::ForOp loop) : loop(loop) {}

  /// Reads the schedule, for a GPU of this compute capability, times 10.
  LogicalResult read(int64_t capability);
  void build();

private:
  Value clone(OpBuilder &builder, Value value, IRMapping &values) const;
  void fetch(OpBuilder &builder, const Staged &staged, Value slot, Value predicate, int64_t ahead, IRMapping &values);
  void fetchAll(OpBuilder &builder, Value first, int64_t iterations, Value slot, IRMapping values, Value isRun = {});
  void fetchFirst(OpBuilder &builder, Value tile = {}, Value isRun = {});
  /// The line that the pipeline's own operations have: that of the first load.
  Location lineOfCopies() const { return all.front().load.getLoc(); }
  /// The first fetches of the first tile; and, after the loop, those of the next one.
  void fetchFirstTile(OpBuilder &builder);
  void fetchNextTile(OpBuilder &builder);
  void makeRings(OpBuilder &builder);
  /// Carries the slot to read, and those read before, of which the earliest is refilled. Returns them, as offsets.
  ValueRange carrySlots(RewriterBase &rewriter);
  /// Waits for an iteration's tiles and fetches later ones. Returns the wait for the product of a warpgroup, or null.
  simt::WaitMultiplyOp beginIteration(OpBuilder &builder, Value read, Value refilled);
  void replaceUses(OpBuilder &builder, const Staged &staged, Value slot);
  Value stageOffset(OpBuilder &builder, const Staged &staged, Value slot) const;
  const Staged *findStaged(tile::LoadOp load) const;
  simt::MultiplyRowsOp multiplyRows(OpBuilder &builder, tile::DotOp dot, Value slot);
  Operation *multiplyAllRows(OpBuilder &builder, Operation *begin, Value slot);
  simt::WaitMultiplyOp multiply(OpBuilder &builder, Value slot, llvm::function_ref<void()> fetches);

  mutable scf::ForOp loop;
  mutable scf::ForOp tiles;        // the loop over tiles around it, whose next tile's first fetches are issued early
  int64_t slots = 0, distance = 0; // of a ring; iterations that a tile is fetched ahead
  int64_t unit = 0;                // unit of slot offsets in bytes: the common size if all slots are equal
  SmallVector<Staged> all;
  tile::DotOp product; // reads both operands from slots
  SmallVector<tile::DotOp> rowsProducts;
};

} // namespace

LogicalResult Pipeline::read(int64_t capability) {
  slots = loop->getAttrOfType<IntegerAttr>(slotsName).getInt();
  distance = loop->getAttrOfType<IntegerAttr>(distanceName).getInt();
  if (loop->hasAttr(nextTileName))
    tiles = cast<scf::ForOp>(loop->getParentOp());
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (const auto engine = load->getAttrOfType<StringAttr>(engineName)) {
      if (!hasEngine(capability, engine))
        return load.emitOpError() << "expected '" << engineName << "' to be an engine that sm_" << capability
                                  << " has, but got " << Attribute(engine);
      const auto slot = load->getAttrOfType<simt::SharedLayoutAttr>(slotName);
      unit = std::gcd(unit, slotBytes(slot));
      all.push_back({load, slot, {}});
    }
  if (all.empty())
    return loop.emitOpError() << "expected a load with '" << engineName << "' in a loop with '" << slotsName << "'";
  for (auto dot : loop.getBody()->getOps<tile::DotOp>()) {
    const auto from = dot->getAttrOfType<StringAttr>(fromSlotsName);
    if (!from)
      continue;
    const bool both = from == "both";
    if (!findStaged(operandLoad(dot.getB()).first) || (both && !findStaged(operandLoad(dot.getA()).first)))
      return dot.emitOpError() << "expected the operands that it reads from slots to be loaded with '" << engineName
                               << "'";
    if (both && product)
      return dot.emitOpError() << "expected at most one product of a loop to read both operands from slots";
    if (both)
      product = dot;
    else
      rowsProducts.push_back(dot);
  }
  return success();
}

const Staged *Pipeline::findStaged(tile::LoadOp load) const {
  const auto *const found = llvm::find_if(all, [&](const Staged &staged) { return staged.load == load; });
  return found == all.end() ? nullptr : found;
}

/// Erases unused moves and conversions, recursively.
static void eraseUnused(Operation *op) {
  SmallVector<Operation *> unused = {op};
  while (!unused.empty()) {
    Operation *const last = unused.pop_back_val();
    const SmallVector<Value> operands(last->getOperands());
    last->erase();
    for (const Value operand : operands)
      if (Operation *const made = operand.getDefiningOp();
          isa_and_present<simt::ConvertOp, tile::TransposeOp, tile::ReshapeOp>(made) && made->use_empty() &&
          !llvm::is_contained(unused, made))
        unused.push_back(made);
  }
}

simt::MultiplyRowsOp Pipeline::multiplyRows(OpBuilder &builder, tile::DotOp dot, Value slot) {
  builder.setInsertionPoint(dot);
  const auto [load, isTransposed] = operandLoad(dot.getB());
  const Staged &right = *findStaged(load);
  const Value acc = matchPattern(dot.getAcc(), m_PosZeroFloat()) ? Value() : dot.getAcc();
  auto multiply = simt::MultiplyRowsOp::create(builder, dot.getLoc(), dot.getType(), dot.getA(), right.ring,
                                               stageOffset(builder, right, slot), acc, dropLeadingExtents(right.slot),
                                               isTransposed, ArrayRef<int64_t>{0, slots});
  dot.replaceAllUsesWith(multiply.getResult());
  eraseUnused(dot);
  return multiply;
}

/// Emits the products of rows, and returns the last operation of those that begin the iteration.
Operation *Pipeline::multiplyAllRows(OpBuilder &builder, Operation *begin, Value slot) {
  SmallVector<Operation *> products, runOn;
  for (tile::DotOp dot : rowsProducts) {
    const bool runsOn = dot->hasAttr(runsOnName);
    products.push_back(multiplyRows(builder, dot, slot));
    if (runsOn)
      runOn.push_back(products.back());
  }
  return products.empty() ? begin : scheduleProducts(loop, begin, products, runOn);
}

/// Emits the product on the tiles of a slot, then `fetches`, then the wait for products.
simt::WaitMultiplyOp Pipeline::multiply(OpBuilder &builder, Value slot, llvm::function_ref<void()> fetches) {
  builder.setInsertionPoint(product);
  const Location loc = product.getLoc();
  const auto [leftLoad, leftTransposed] = operandLoad(product.getA());
  const auto [rightLoad, rightTransposed] = operandLoad(product.getB());
  const Staged &left = *findStaged(leftLoad), &right = *findStaged(rightLoad);
  const Value acc =
      simt::MultiplyOp::create(builder, loc, product.getType(), left.ring, stageOffset(builder, left, slot), right.ring,
                               stageOffset(builder, right, slot), product.getAcc(), left.slot, leftTransposed,
                               right.slot, rightTransposed, ArrayRef<int64_t>{0, slots});
  fetches();
  auto wait = simt::WaitMultiplyOp::create(builder, loc, acc.getType(), product->hasAttr(runsOnName) ? 1 : 0, acc);
  product.replaceAllUsesWith(wait.getResult(0));
  eraseUnused(product);
  return wait;
}

// --- The loop in stages ----------------------------------------------------------------------------------------------

/// The byte offset of a tile's slot in its ring.
Value Pipeline::stageOffset(OpBuilder &builder, const Staged &staged, Value slot) const {
  if (slotBytes(staged.slot) == unit)
    return slot;
  const Location loc = staged.load.getLoc();
  const Value units = arith::ConstantIntOp::create(builder, loc, slotBytes(staged.slot) / unit, 32);
  return builder.createOrFold<arith::MulIOp>(loc, slot, units);
}

/// A copy of the scalar `value` for the induction variables in `values`, which gets all copies.
Value Pipeline::clone(OpBuilder &builder, Value value, IRMapping &values) const {
  if (const Value known = values.lookupOrNull(value))
    return known;
  Operation *const op = value.getDefiningOp();
  const auto isIn = [&](scf::ForOp each) {
    return values.contains(each.getInductionVar()) && op->getBlock() == each.getBody();
  };
  if (!op || !(isIn(loop) || (tiles && isIn(tiles))))
    return value;
  for (const Value operand : op->getOperands())
    values.map(operand, clone(builder, operand, values));
  builder.clone(*op, values);
  return values.lookup(value);
}

/// Starts a copy of the tile for the induction variables in `values` to a slot.
void Pipeline::fetch(OpBuilder &builder, const Staged &staged, Value slot, Value predicate, int64_t ahead,
                     IRMapping &values) {
  SmallVector<Value> offsets;
  for (const Value offset : staged.load.getOffsets())
    offsets.push_back(clone(builder, offset, values));
  const auto layout = staged.load->getAttrOfType<LayoutAttr>(copyLayoutName);
  const auto vector = staged.load->getAttrOfType<IntegerAttr>(copyVectorName);
  SmallVector<int64_t> place = {ahead, slots};
  if (distance != slots - 1)
    place.push_back(distance);
  auto made = simt::FetchOp::create(builder, staged.load.getLoc(), staged.load.getView(), offsets, staged.ring,
                                    stageOffset(builder, staged, slot), predicate, builder.getDenseI64ArrayAttr(place),
                                    vector, staged.slot, layout, staged.load->getAttrOfType<UnitAttr>(copyWholeName));
  tile::copyCache(staged.load, made);
  if (const Attribute inside = staged.load->getAttr("tile.inside"))
    made->setAttr("tile.inside", inside);
}

/// Fetches the tiles of the iteration that is `iterations` after the position `first`, if the loop has it, and `isRun`.
void Pipeline::fetchAll(OpBuilder &builder, Value first, int64_t iterations, Value slot, IRMapping values,
                        Value isRun) {
  const Location loc = all.front().load.getLoc();
  const Value count = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(first.getType(), iterations));
  const Value offset = arith::MulIOp::create(builder, loc, clone(builder, loop.getStep(), values), count);
  const Value position = arith::AddIOp::create(builder, loc, first, offset),
              end = clone(builder, loop.getUpperBound(), values);
  Value isThere = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, position, end);
  if (isRun)
    isThere = arith::AndIOp::create(builder, loc, isThere, isRun);
  values.map(loop.getInductionVar(), position);
  for (const Staged &staged : all)
    fetch(builder, staged, slot, isThere, iterations, values);
  simt::CommitCopiesOp::create(builder, loc);
}

/// Fetches the tiles of the first iterations; with `isRun`, for the position `tile` of the loop over tiles.
void Pipeline::fetchFirst(OpBuilder &builder, Value tile, Value isRun) {
  IRMapping values;
  if (isRun)
    values.map(tiles.getInductionVar(), tile);
  for (int64_t ahead = 0; ahead < distance; ++ahead)
    fetchAll(builder, clone(builder, loop.getLowerBound(), values), ahead,
             arith::ConstantIntOp::create(builder, all.front().load.getLoc(), ahead * unit, 32), values, isRun);
}

/// Reads the tile from its slot: in the operand's layout for a product, otherwise in the load's layout.
void Pipeline::replaceUses(OpBuilder &builder, const Staged &staged, Value slot) {
  const auto read = [&](OpBuilder &builder, Location loc, LayoutAttr layout) -> Value {
    const simt::SharedAccess access =
        simt::bestAccess(layout.getLayout(), staged.slot.getMap(), staged.slot.getBits(), /*hasMatrix=*/true);
    const auto movement = simt::MovementAttr::get(builder.getContext(), static_cast<simt::Movement>(access.op));
    return simt::ReadOp::create(builder, loc, simt::withLayout(staged.load.getType(), layout), staged.ring,
                                stageOffset(builder, staged, slot), {}, movement, staged.slot,
                                builder.getDenseI64ArrayAttr({0, slots}));
  };
  for (Operation *user : llvm::make_early_inc_range(staged.load->getUsers())) {
    const auto use = operandUse(user);
    if (!use)
      continue;
    simt::ConvertOp convert = use->convert;
    OpBuilder here(convert);
    Value tile = read(here, staged.load.getLoc(), LayoutAttr::get(builder.getContext(), use->layout));
    for (const auto [move, type] : llvm::zip_equal(use->moves, llvm::reverse(use->types))) {
      IRMapping mapping;
      mapping.map(move->getOperand(0), tile);
      tile = here.clone(*move, mapping)->getResult(0);
      tile.setType(type);
    }
    convert.getResult().replaceAllUsesWith(tile);
    convert.erase();
    for (Operation *move : llvm::reverse(use->moves))
      move->erase();
  }
  if (!staged.load->use_empty()) {
    OpBuilder here(staged.load);
    staged.load.getResult().replaceAllUsesWith(read(here, staged.load.getLoc(), simt::layoutOf(staged.load.getType())));
  }
  staged.load->erase();
}

void Pipeline::makeRings(OpBuilder &builder) {
  for (Staged &staged : all) {
    const auto type = MemRefType::get({slots * slotBytes(staged.slot)}, builder.getI8Type(),
                                      MemRefLayoutAttrInterface(), builder.getI64IntegerAttr(3));
    // Between the loops of two tiles the later slots are empty.
    const IntegerAttr idle = tiles ? builder.getI64IntegerAttr(distance * slotBytes(staged.slot)) : IntegerAttr();
    staged.ring = simt::BufferOp::create(builder, staged.load.getLoc(), type, IntegerAttr(), idle);
  }
}

void Pipeline::fetchFirstTile(OpBuilder &builder) {
  if (!tiles)
    return fetchFirst(builder);
  const Value begin = tiles.getLowerBound(), end = tiles.getUpperBound();
  const Value isRun = arith::CmpIOp::create(builder, lineOfCopies(), arith::CmpIPredicate::slt, begin, end);
  fetchFirst(builder, begin, isRun);
}

void Pipeline::fetchNextTile(OpBuilder &builder) {
  const Location loc = lineOfCopies();
  // The next position may be beyond the largest integer; the distance to the end is not.
  const Value tile = tiles.getInductionVar(), step = tiles.getStep();
  const Value left = arith::SubIOp::create(builder, loc, tiles.getUpperBound(), tile);
  const Value next = arith::AddIOp::create(builder, loc, tile, step);
  const Value isRun = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, step, left);
  fetchFirst(builder, next, isRun);
  builder.setInsertionPointAfter(tiles);
  simt::WaitCopiesOp::create(builder, loc, 0);
}

ValueRange Pipeline::carrySlots(RewriterBase &rewriter) {
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> first;
  for (int64_t earlier = 0; earlier <= slots - distance; ++earlier)
    first.push_back(arith::ConstantIntOp::create(rewriter, lineOfCopies(), (slots - earlier) % slots * unit, 32));
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &builder, Location at, ArrayRef<BlockArgument> places) -> SmallVector<Value> {
        const Value one = arith::ConstantIntOp::create(builder, at, unit, 32),
                    last = arith::ConstantIntOp::create(builder, at, (slots - 1) * unit, 32),
                    zero = arith::ConstantIntOp::create(builder, at, 0, 32);
        const Value isLast = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::eq, places[0], last);
        const Value next = arith::AddIOp::create(builder, at, places[0], one);
        SmallVector<Value> now = {arith::SelectOp::create(builder, at, isLast, zero, next)};
        now.append(places.begin(), std::prev(places.end()));
        return now;
      }));
  return loop.getRegionIterArgs().take_back(first.size());
}

simt::WaitMultiplyOp Pipeline::beginIteration(OpBuilder &builder, Value read, Value refilled) {
  const Location loc = lineOfCopies();
  builder.setInsertionPointToStart(loop.getBody());
  Operation *begin = simt::WaitCopiesOp::create(builder, loc, distance - 1, /*shown=*/product || !rowsProducts.empty());
  const auto fetchNext = [&] { fetchAll(builder, loop.getInductionVar(), distance, refilled, {}); };
  if (!product) {
    builder.setInsertionPointAfter(multiplyAllRows(builder, begin, read));
    fetchNext();
    return {};
  }
  // Also orders the products' reads of the slot that is refilled.
  simt::BarrierOp::create(builder, loc, builder.getStringAttr("shared memory written, then multiplied"));
  simt::WaitMultiplyOp multiplied = multiply(builder, read, fetchNext);
  multiplyAllRows(builder, multiplied, read);
  return multiplied;
}

void Pipeline::build() {
  IRRewriter rewriter(tiles ? tiles : loop);
  const bool runsOn = product && product->hasAttr(runsOnName);
  makeRings(rewriter);
  fetchFirstTile(rewriter);
  const ValueRange places = carrySlots(rewriter);
  for (const StringRef name : {slotsName, distanceName, nextTileName})
    loop->removeAttr(name);
  simt::WaitMultiplyOp multiplied = beginIteration(rewriter, places.front(), places.back());
  rewriter.setInsertionPointAfter(loop);
  simt::WaitCopiesOp::create(rewriter, lineOfCopies(), 0);
  if (runsOn) {
    const Value acc = loop.getResult(multiplied->getUses().begin()->getOperandNumber());
    auto wait = simt::WaitMultiplyOp::create(rewriter, multiplied.getLoc(), acc.getType(), 0, acc);
    rewriter.replaceAllUsesExcept(acc, wait.getResult(0), wait);
  }
  if (tiles)
    fetchNextTile(rewriter);
  for (const Staged &each : all)
    replaceUses(rewriter, each, places.front());
  moveLoadsAhead(loop);
}

namespace {
struct ExpandPipeline : impl::ExpandPipelineBase<ExpandPipeline> {
  using ExpandPipelineBase::ExpandPipelineBase;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(slotsName))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      Pipeline pipeline(loop);
      if (failed(pipeline.read(capability)))
        return signalPassFailure();
      pipeline.build();
    }
  }
};
} // namespace

} // namespace kiln::lowering::gpu

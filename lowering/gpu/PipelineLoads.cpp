// Copies the operands of products to shared memory some iterations ahead (software pipelining).
//
//     for k:                                        fetch 0 … S−2 into slots 0 … S−2, a group each
//       x = load a[m, k]                            for k:
//       y = convert x         ── becomes ──►          wait for all groups but S−2
//       acc = dot(y, …)                               fetch the tile of S−1 iterations later, a group
//                                                     y = read of the slot
//                                                     acc = dot(y, …)
//                                                   wait for all groups
//
// A tile has a ring of S slots. An iteration's fetch goes to the slot that the previous iteration has read. So one
// barrier per iteration is enough, after the wait and before the fetch; gpu-insert-barriers puts it there. Every
// iteration commits a group, of zeros after the last tile. So all groups except the newest S−2 belong to this or
// earlier iterations.
//
// A product of a warpgroup (wgmma) reads its slots asynchronously:
//
//     for k:
//       wait for all groups but S−3; barrier
//       acc = multiply slots, acc
//       fetch the tile of S−2 iterations later, a group
//       wait for all products but this one
//
// Then the slot of the previous iteration is also in use. With fewer than four slots the product is waited for
// immediately.
//
// A product with rows in registers reads only its right operand's slot; it replaces that operand's read and the dot.
// ScheduleProducts.cpp says when it begins and where it is waited for. With three slots or more it may run on while the
// next iteration begins; then the slot of the previous iteration is also in use.
//
// If a loop over tiles contains the loop, as in a persistent kernel, the first fetches for the next tile are issued as
// soon as the loop has ended. They run while this tile's results are computed and stored:
//
//     for tile:                                      fetch 0 … S−2 of the first tile
//       fetch 0 … S−2                                for tile:
//       for k: …                  ── becomes ──►       for k: …
//       store acc                                      fetch 0 … S−2 of the next tile
//                                                      store acc

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/Pipeline.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/WgmmaLayout.h"
#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/tile/AccessRules.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <string>

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_PIPELINELOADS
#include "lowering/gpu/Passes.h.inc"

using simt::LayoutAttr;
using simt::TileLayout;

namespace {

/// A product that reads its operands from rings.
struct Product {
  mutable tile::DotOp dot;
  tile::LoadOp left, right;
  bool leftTransposed = false, rightTransposed = false;
};

/// A product of rows in registers that reads its right operand from a ring.
struct RowsProduct {
  mutable tile::DotOp dot;
  tile::LoadOp right;
  bool isTransposed = false, runsOn = false;
};

/// One loop.
class Pipeline {
public:
  Pipeline(scf::ForOp loop, int64_t stages, int64_t held, bool early)
      : loop(loop), stages(stages), held(held), early(early) {}

  /// Finds the loads that can be copied ahead, and the number of stages that fit `bytes`; without `exactly`, it may be
  /// reduced.
  bool plan(int64_t bytes, bool exactly);
  void build();

private:
  scf::ForOp findTiles() const;
  Value clone(OpBuilder &builder, Value value, IRMapping &values) const;
  void fetch(OpBuilder &builder, const Staged &staged, Value slot, Value predicate, int64_t ahead, IRMapping &values);
  void fetchAll(OpBuilder &builder, Value first, int64_t iterations, Value slot, IRMapping values, Value isRun = {});
  void fetchFirst(OpBuilder &builder, Value tile = {}, Value isRun = {});
  void replaceUses(OpBuilder &builder, const Staged &staged, Value slot);
  Value stageOffset(OpBuilder &builder, const Staged &staged, Value slot) const;
  const Staged *findStaged(tile::LoadOp load) const;
  void findProduct();
  void findRowsProducts();
  simt::MultiplyRowsOp multiplyRows(OpBuilder &builder, const RowsProduct &rows, Value slot);
  Operation *multiplyAllRows(OpBuilder &builder, Operation *begin, Value slot);
  simt::WaitMultiplyOp multiply(OpBuilder &builder, Value slot, llvm::function_ref<void()> fetches);
  /// The number of iterations that a tile is fetched ahead.
  int64_t distance() const { return stages - 1 - (productsUnderWay() || rowsRunOn() ? 1 : 0); }
  /// Products of slots that are still pending at the end of an iteration.
  int64_t productsUnderWay() const { return product && stages >= 4 ? 1 : 0; }
  /// Whether products of rows are.
  bool rowsRunOn() const {
    return stages >= 3 && llvm::any_of(rowsProducts, [](const RowsProduct &rows) { return rows.runsOn; });
  }

  mutable scf::ForOp loop;
  mutable scf::ForOp tiles; // the loop over tiles around it, whose next tile's first fetches are issued early; or null
  int64_t stages;
  const int64_t held;   // registers of a thread for tiles that are live during the loop
  const bool early;     // whether the next tile's first fetches may be issued early
  int64_t unit = 0;     // unit of slot offsets in bytes: the common size if all slots are equal
  int64_t programs = 1; // on an SM, as many as the kernel asks for or shared memory holds
  SmallVector<Staged> all;
  std::optional<Product> product;
  SmallVector<RowsProduct> rowsProducts;
};

} // namespace

/// The outermost loop, if this is the only one directly inside of it, and the bounds of this one and the places of its
/// tiles follow from both induction variables.
scf::ForOp Pipeline::findTiles() const {
  auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
  if (!outer || !early || !rowsProducts.empty() || outer->getParentOfType<LoopLikeOpInterface>() ||
      !llvm::hasSingleElement(outer.getBody()->getOps<LoopLikeOpInterface>()))
    return {};
  if (const auto own = outer->getAttrOfType<IntegerAttr>("tile.stages"); own && own.getInt() == 1)
    return {}; // {.pipeline = false}
  const auto follows = [&](Value value) { return followsFrom({outer, loop}, value); };
  const auto isAround = [&](const Staged &staged) {
    return staged.load.getView().getParentRegion()->isProperAncestor(&outer.getBodyRegion()) &&
           llvm::all_of(staged.load.getOffsets(), follows);
  };
  return llvm::all_of(loop->getOperands().take_front(loop.getNumControlOperands()), follows) &&
                 llvm::all_of(all, isAround)
             ? outer
             : scf::ForOp();
}

bool Pipeline::plan(int64_t bytes, bool exactly) {
  int64_t each = 0;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    separateUses(load);
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (auto staged = stageOf(loop, load)) {
      each += staged->slotBytes();
      unit = std::gcd(unit, staged->slotBytes());
      all.push_back(*staged);
    }
  if (all.empty())
    return false;
  if (!exactly)
    stages = std::min(stages, bytes / each);
  for (const Staged &staged : all)
    if (stages < 2 && !exactly)
      refuse(staged.load, "two stages of " + std::to_string(each) + " bytes do not fit shared memory");
  findProduct();
  findRowsProducts();
  if (stages < 2)
    return false;
  tiles = findTiles();
  programs = std::max(minCtasPerSm(loop->getParentOfType<func::FuncOp>()), bytes / (stages * each));
  return true;
}

const Staged *Pipeline::findStaged(tile::LoadOp load) const {
  const auto *const found = llvm::find_if(all, [&](const Staged &staged) { return staged.load == load; });
  return found == all.end() ? nullptr : found;
}

/// Finds the one product whose accumulator is not used otherwise in the loop, and whose operands the tensor cores can
/// read from their rings.
void Pipeline::findProduct() {
  for (auto dot : loop.getBody()->getOps<tile::DotOp>()) {
    if (!dot->hasAttr("simt.wgmma"))
      continue;
    const auto [left, leftTransposed] = operandLoad(dot.getA());
    const auto [right, rightTransposed] = operandLoad(dot.getB());
    const Staged *const a = left ? findStaged(left) : nullptr, *const b = right ? findStaged(right) : nullptr;
    auto acc = dyn_cast<BlockArgument>(dot.getAcc());
    OpOperand *const yielded = acc && acc.getOwner() == loop.getBody() ? loop.getTiedLoopYieldedValue(acc) : nullptr;
    if (product || !a || !b || a->sharedLayout != a->matrix || b->sharedLayout != b->matrix || !yielded ||
        yielded->get() != dot.getResult() || !dot->hasOneUse() || !acc.hasOneUse() ||
        !matrixIn(a->sharedLayout, leftTransposed ? 1 : 0, 64) ||
        !matrixIn(b->sharedLayout, rightTransposed ? 0 : 1, tile::shapeOf(dot.getType())[1]))
      continue;
    product = Product{dot, left, right, leftTransposed, rightTransposed};
  }
}

/// Finds the other products whose right operand the tensor cores can read from its ring.
void Pipeline::findRowsProducts() {
  for (auto dot : loop.getBody()->getOps<tile::DotOp>()) {
    if (!dot->hasAttr("simt.wgmma") || (product && product->dot == dot))
      continue;
    const auto [right, isTransposed] = operandLoad(dot.getB());
    const Staged *const b = right ? findStaged(right) : nullptr;
    if (b && matrixIn(b->matrix, isTransposed ? 0 : 1, tile::shapeOf(dot.getType())[1]))
      rowsProducts.push_back({dot, right, isTransposed});
  }
  const auto dots = llvm::map_to_vector(rowsProducts, [](const RowsProduct &rows) { return rows.dot.getOperation(); });
  for (RowsProduct &rows : rowsProducts)
    rows.runsOn = !product && mayRunOn(loop, rows.dot, dots);
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

simt::MultiplyRowsOp Pipeline::multiplyRows(OpBuilder &builder, const RowsProduct &rows, Value slot) {
  tile::DotOp dot = rows.dot;
  builder.setInsertionPoint(dot);
  const Staged &right = *findStaged(rows.right);
  const Value acc = matchPattern(dot.getAcc(), m_PosZeroFloat()) ? Value() : dot.getAcc();
  auto multiply = simt::MultiplyRowsOp::create(builder, dot.getLoc(), dot.getType(), dot.getA(), right.ring,
                                               stageOffset(builder, right, slot), acc, right.matrix, rows.isTransposed,
                                               ArrayRef<int64_t>{0, stages});
  dot.replaceAllUsesWith(multiply.getResult());
  eraseUnused(dot);
  return multiply;
}

/// Emits the products of rows, and returns the last operation of those that begin the iteration.
Operation *Pipeline::multiplyAllRows(OpBuilder &builder, Operation *begin, Value slot) {
  SmallVector<Operation *> products, runOn;
  for (const RowsProduct &rows : rowsProducts) {
    products.push_back(multiplyRows(builder, rows, slot));
    if (rows.runsOn && rowsRunOn())
      runOn.push_back(products.back());
  }
  return products.empty() ? begin : scheduleProducts(loop, begin, products, runOn);
}

/// Emits the product on the tiles of a slot, then `fetches`, then the wait for products.
simt::WaitMultiplyOp Pipeline::multiply(OpBuilder &builder, Value slot, llvm::function_ref<void()> fetches) {
  tile::DotOp dot = product->dot;
  builder.setInsertionPoint(dot);
  const Location loc = dot.getLoc();
  const Staged &left = *findStaged(product->left), &right = *findStaged(product->right);
  const Value acc = simt::MultiplyOp::create(builder, loc, dot.getType(), left.ring, stageOffset(builder, left, slot),
                                             right.ring, stageOffset(builder, right, slot), dot.getAcc(),
                                             left.sharedLayout, product->leftTransposed, right.sharedLayout,
                                             product->rightTransposed, ArrayRef<int64_t>{0, stages});
  fetches();
  auto wait = simt::WaitMultiplyOp::create(builder, loc, acc.getType(), productsUnderWay(), acc);
  dot.replaceAllUsesWith(wait.getResult(0));
  eraseUnused(dot);
  return wait;
}

// --- The loop in stages ----------------------------------------------------------------------------------------------

/// The byte offset of a tile's slot in its ring.
Value Pipeline::stageOffset(OpBuilder &builder, const Staged &staged, Value slot) const {
  if (staged.slotBytes() == unit)
    return slot;
  const Location loc = staged.load.getLoc();
  const Value units = arith::ConstantIntOp::create(builder, loc, staged.slotBytes() / unit, 32);
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
  auto made =
      simt::FetchOp::create(builder, staged.load.getLoc(), staged.load.getView(), offsets, staged.ring,
                            stageOffset(builder, staged, slot), predicate,
                            distance() == stages - 1 ? builder.getDenseI64ArrayAttr({ahead, stages})
                                                     : builder.getDenseI64ArrayAttr({ahead, stages, distance()}),
                            builder.getI64IntegerAttr(staged.width.elements), staged.sharedLayout, staged.copies,
                            staged.width.whole ? builder.getUnitAttr() : UnitAttr());
  tile::copyCache(staged.load, made);
  if (const Attribute inside = staged.load->getAttr("tile.inside"))
    made->setAttr("tile.inside", inside);
}

/// Fetches the tiles of the iteration that is `iterations` after the position `first`, if the loop has it, and `isRun`.
void Pipeline::fetchAll(OpBuilder &builder, Value first, int64_t iterations, Value slot, IRMapping values,
                        Value isRun) {
  const Location loc = all.front().load.getLoc();
  const Value count = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(first.getType(), iterations));
  const Value distance = arith::MulIOp::create(builder, loc, clone(builder, loop.getStep(), values), count);
  const Value position = arith::AddIOp::create(builder, loc, first, distance),
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
  for (int64_t ahead = 0; ahead < distance(); ++ahead)
    fetchAll(builder, clone(builder, loop.getLowerBound(), values), ahead,
             arith::ConstantIntOp::create(builder, all.front().load.getLoc(), ahead * unit, 32), values, isRun);
}

/// Reads the tile from its slot: in the operand's layout for a product, otherwise in the load's layout.
void Pipeline::replaceUses(OpBuilder &builder, const Staged &staged, Value slot) {
  const auto read = [&](OpBuilder &builder, Location loc, LayoutAttr layout) -> Value {
    const simt::SharedAccess access = simt::bestAccess(layout.getLayout(), staged.sharedLayout.getMap(),
                                                       staged.sharedLayout.getBits(), /*hasMatrix=*/true);
    const auto movement = simt::MovementAttr::get(builder.getContext(), static_cast<simt::Movement>(access.op));
    return simt::ReadOp::create(builder, loc, simt::withLayout(staged.load.getType(), layout), staged.ring,
                                stageOffset(builder, staged, slot), {}, movement, staged.sharedLayout,
                                builder.getDenseI64ArrayAttr({0, stages}));
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

void Pipeline::build() {
  const Location loc = all.front().load.getLoc();
  IRRewriter rewriter(tiles ? tiles : loop);
  for (Staged &staged : all) {
    const auto type = MemRefType::get({stages * staged.slotBytes()}, rewriter.getI8Type(), MemRefLayoutAttrInterface(),
                                      rewriter.getI64IntegerAttr(3));
    // Between the loops of two tiles the later slots are empty.
    const IntegerAttr idle = tiles ? rewriter.getI64IntegerAttr(distance() * staged.slotBytes()) : IntegerAttr();
    staged.ring = simt::BufferOp::create(rewriter, staged.load.getLoc(), type, IntegerAttr(), idle);
  }
  const auto compare = [&](arith::CmpIPredicate predicate, Value left, Value right) -> Value {
    return arith::CmpIOp::create(rewriter, loc, predicate, left, right);
  };
  if (tiles)
    fetchFirst(rewriter, tiles.getLowerBound(),
               compare(arith::CmpIPredicate::slt, tiles.getLowerBound(), tiles.getUpperBound()));
  else
    fetchFirst(rewriter);

  // The slot to read, and those read before, of which the earliest is refilled.
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> first;
  for (int64_t earlier = 0; earlier <= stages - distance(); ++earlier)
    first.push_back(arith::ConstantIntOp::create(rewriter, loc, (stages - earlier) % stages * unit, 32));
  auto staged = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &builder, Location at, ArrayRef<BlockArgument> slots) -> SmallVector<Value> {
        const Value one = arith::ConstantIntOp::create(builder, at, unit, 32),
                    last = arith::ConstantIntOp::create(builder, at, (stages - 1) * unit, 32),
                    zero = arith::ConstantIntOp::create(builder, at, 0, 32);
        const Value isLast = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::eq, slots[0], last);
        const Value next = arith::AddIOp::create(builder, at, slots[0], one);
        SmallVector<Value> now = {arith::SelectOp::create(builder, at, isLast, zero, next)};
        now.append(slots.begin(), std::prev(slots.end()));
        return now;
      }));
  loop = staged;
  const auto slots = loop.getRegionIterArgs().take_back(first.size());
  rewriter.setInsertionPointToStart(loop.getBody());
  Operation *begin =
      simt::WaitCopiesOp::create(rewriter, loc, distance() - 1, /*shown=*/product || !rowsProducts.empty());
  const auto fetchNext = [&] { fetchAll(rewriter, loop.getInductionVar(), distance(), slots.back(), {}); };
  simt::WaitMultiplyOp multiplied;
  if (product) {
    // Also orders the products' reads of the slot that is refilled.
    simt::BarrierOp::create(rewriter, loc, rewriter.getStringAttr("shared memory written, then multiplied"));
    multiplied = multiply(rewriter, slots.front(), fetchNext);
    multiplyAllRows(rewriter, multiplied, slots.front());
  } else {
    rewriter.setInsertionPointAfter(multiplyAllRows(rewriter, begin, slots.front()));
    fetchNext();
  }
  rewriter.setInsertionPointAfter(loop);
  simt::WaitCopiesOp::create(rewriter, loc, 0);
  if (productsUnderWay() > 0) {
    const Value acc = loop.getResult(multiplied->getUses().begin()->getOperandNumber());
    auto wait = simt::WaitMultiplyOp::create(rewriter, multiplied.getLoc(), acc.getType(), 0, acc);
    rewriter.replaceAllUsesExcept(acc, wait.getResult(0), wait);
  }
  if (tiles) {
    // The next position may be beyond the largest integer; the distance to the end is not.
    const Value tile = tiles.getInductionVar(), step = tiles.getStep();
    const Value left = arith::SubIOp::create(rewriter, loc, tiles.getUpperBound(), tile);
    fetchFirst(rewriter, arith::AddIOp::create(rewriter, loc, tile, step),
               compare(arith::CmpIPredicate::ult, step, left));
    rewriter.setInsertionPointAfter(tiles);
    simt::WaitCopiesOp::create(rewriter, loc, 0);
  }
  for (const Staged &each : all)
    replaceUses(rewriter, each, slots.front());
  if (product)
    loadAhead(loop, held, programs);
}

namespace {
struct PipelineLoads : impl::PipelineLoadsBase<PipelineLoads> {
  using PipelineLoadsBase::PipelineLoadsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    const auto asked = func->getAttrOfType<IntegerAttr>("tile.stages");
    const HeldRegisters held = heldRegisters(func);
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      const auto own = loop->getAttrOfType<IntegerAttr>("tile.stages"), wanted = own ? own : asked;
      Pipeline pipeline(loop, wanted ? wanted.getInt() : int64_t(stages), held.lookup(loop), early);
      if (pipeline.plan(limit, /*exactly=*/static_cast<bool>(wanted)))
        pipeline.build();
    }
    func.walk([](scf::WhileOp loop) {
      for (auto load : loop.getAfterBody()->getOps<tile::LoadOp>())
        if (llvm::any_of(load->getUsers(), isConvertedToOperand))
          refuse(load, "its loop may end before any iteration");
    });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

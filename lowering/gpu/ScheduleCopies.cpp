// Decides which operands of products are copied to shared memory some iterations ahead, and how (software pipelining).
//
//     for k:                                        for k:  {slots = 4, distance = 2}
//       x = load a[m, k]                              x = load a[m, k]  {engine = "cp.async", slot = …, …}
//       y = load b[k, n]             ── becomes ──►   y = load b[k, n]  {engine = "cp.async", slot = …, …}
//       acc = dot(x, y, acc)                          acc = dot(x, y, acc)  {from_slots = "both", runs_on}
//     r = load residual[m, n]                       r = load residual[m, n]  {ahead}
//
// The attributes are those of Pipeline.h. A tile has a ring of S slots. An iteration's copy goes to the slot that the
// previous iteration has read. So one barrier per iteration is enough, after the wait and before the copy. Then tiles
// are copied S − 1 iterations ahead.
//
// Tensor cores read the slots of a product of warpgroups (wgmma) asynchronously. With four slots or more the product
// runs on while the next iteration begins. Then the slot of the previous iteration is also in use, so tiles are copied
// one iteration less ahead. A product with rows in registers reads only its right operand's slot; with three slots or
// more it may run on, too.
//
// In a persistent kernel, a loop over tiles contains the loop. The first copies for the next tile begin as soon as the
// inner loop has ended. They run while this tile's results are computed and stored.

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/Pipeline.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/WgmmaLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_SCHEDULECOPIES
#include "lowering/gpu/Passes.h.inc"

/// An instruction that copies to shared memory while the threads continue.
struct CopyEngine {
  StringLiteral name;
  int64_t capability; // of the oldest GPUs that have it, times 10
};
/// The best one first (PTX ISA, "cp.async").
static constexpr CopyEngine engines[] = {{"cp.async", 80}};

bool hasEngine(int64_t capability, StringRef name) {
  return llvm::any_of(engines, [&](auto &each) { return each.name == name && each.capability <= capability; });
}

namespace {

/// One loop.
class Schedule {
public:
  Schedule(scf::ForOp loop, StringRef engine) : loop(loop), engine(engine), builder(loop.getContext()) {}

  /// Writes the schedule with so many slots, or with as many as fit `bytes` unless `exactly`. A thread holds `held`
  /// registers for tiles that are live during the loop.
  void write(int64_t slots, int64_t bytes, bool exactly, int64_t held);

private:
  std::optional<Copy> findCopy(Value operand, bool &isTransposed) const;
  bool readsBoth(tile::DotOp dot) const;
  bool readsRight(tile::DotOp dot) const;
  bool writeProducts(int64_t slots);
  bool hasNextTile() const;
  void set(Operation *op, StringRef name, int64_t value) { op->setAttr(name, builder.getI64IntegerAttr(value)); }
  void set(Operation *op, StringRef name, StringRef value) { op->setAttr(name, builder.getStringAttr(value)); }
  void set(Operation *op, StringRef name) { op->setAttr(name, builder.getUnitAttr()); }

  mutable scf::ForOp loop;
  const StringRef engine;
  Builder builder;
  SmallVector<Copy> copies;
  tile::DotOp product; // reads both operands from slots
  SmallVector<Operation *> rowsProducts;
};

} // namespace

/// Whether the loop is the inner loop of a persistent kernel. The loop around it is the outermost and directly contains
/// no other. The bounds of the loop and the places of its tiles follow from both induction variables.
bool Schedule::hasNextTile() const {
  auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
  if (!outer || !rowsProducts.empty() || outer->getParentOfType<LoopLikeOpInterface>() ||
      !llvm::hasSingleElement(outer.getBody()->getOps<LoopLikeOpInterface>()))
    return false;
  if (const auto own = outer->getAttrOfType<IntegerAttr>("tile.stages"); own && own.getInt() == 1)
    return false; // {.pipeline = false}
  const auto follows = [&](Value value) { return followsFrom({outer, loop}, value); };
  const auto isAround = [&](const Copy &copy) {
    return copy.load.getView().getParentRegion()->isProperAncestor(&outer.getBodyRegion()) &&
           llvm::all_of(copy.load.getOffsets(), follows);
  };
  return llvm::all_of(loop->getOperands().take_front(loop.getNumControlOperands()), follows) &&
         llvm::all_of(copies, isAround);
}

std::optional<Copy> Schedule::findCopy(Value operand, bool &isTransposed) const {
  tile::LoadOp load;
  std::tie(load, isTransposed) = operandLoad(operand);
  const auto *const found = llvm::find_if(copies, [&](const Copy &copy) { return copy.load == load; });
  return found == copies.end() ? std::nullopt : std::optional(*found);
}

/// Whether only the loop adds to the accumulator, and the tensor cores can read both operands from their slots.
bool Schedule::readsBoth(tile::DotOp dot) const {
  bool leftTransposed = false, rightTransposed = false;
  const auto left = findCopy(dot.getA(), leftTransposed), right = findCopy(dot.getB(), rightTransposed);
  auto acc = dyn_cast<BlockArgument>(dot.getAcc());
  OpOperand *const yielded = acc && acc.getOwner() == loop.getBody() ? loop.getTiedLoopYieldedValue(acc) : nullptr;
  return left && right && left->slot == dropLeadingExtents(left->slot) &&
         right->slot == dropLeadingExtents(right->slot) && yielded && yielded->get() == dot.getResult() &&
         dot->hasOneUse() && acc.hasOneUse() && matrixIn(left->slot, leftTransposed ? 1 : 0, 64) &&
         matrixIn(right->slot, rightTransposed ? 0 : 1, tile::shapeOf(dot.getType())[1]);
}

/// Whether the tensor cores can read the right operand from its slot.
bool Schedule::readsRight(tile::DotOp dot) const {
  bool isTransposed = false;
  const auto right = findCopy(dot.getB(), isTransposed);
  return right && matrixIn(dropLeadingExtents(right->slot), isTransposed ? 0 : 1, tile::shapeOf(dot.getType())[1]);
}

/// Returns whether a product runs on.
bool Schedule::writeProducts(int64_t slots) {
  SmallVector<tile::DotOp> dots;
  for (auto dot : loop.getBody()->getOps<tile::DotOp>())
    if (dot->hasAttr("simt.wgmma"))
      dots.push_back(dot);
  if (auto *const found = llvm::find_if(dots, [&](tile::DotOp dot) { return readsBoth(dot); }); found != dots.end()) {
    product = *found;
    set(product, fromSlotsName, "both");
  }
  for (tile::DotOp dot : dots)
    if (dot != product && readsRight(dot)) {
      rowsProducts.push_back(dot);
      set(dot, fromSlotsName, "right");
    }
  SmallVector<Operation *> runOn;
  if (product && slots >= 4)
    runOn.push_back(product);
  if (!product && slots >= 3)
    llvm::copy_if(rowsProducts, std::back_inserter(runOn),
                  [&](Operation *dot) { return mayRunOn(loop, dot, rowsProducts); });
  for (Operation *dot : runOn)
    set(dot, runsOnName);
  return !runOn.empty();
}

void Schedule::write(int64_t slots, int64_t bytes, bool exactly, int64_t held) {
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    separateUses(load);
  int64_t each = 0;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (const auto copy = planCopy(loop, load)) {
      each += slotBytes(copy->slot);
      copies.push_back(*copy);
    }
  if (copies.empty())
    return;
  if (!exactly)
    slots = std::min(slots, bytes / each);
  for (const Copy &copy : copies)
    if (slots < 2 && !exactly)
      refuse(copy.load, "two stages of " + std::to_string(each) + " bytes do not fit shared memory");
  if (slots < 2)
    return;
  const bool runsOn = writeProducts(slots);
  set(loop, slotsName, slots);
  set(loop, distanceName, slots - (runsOn ? 2 : 1));
  if (hasNextTile())
    set(loop, nextTileName);
  for (const Copy &copy : copies) {
    set(copy.load, engineName, engine);
    set(copy.load, copyVectorName, copy.width.elements);
    if (copy.width.whole)
      set(copy.load, copyWholeName);
    copy.load->setAttr(copyLayoutName, copy.layout);
    copy.load->setAttr(slotName, copy.slot);
  }
  // An SM holds as many programs as the kernel asks for, or as shared memory has room for.
  if (product)
    markLoadsAhead(loop, held, std::max(minCtasPerSm(loop->getParentOfType<func::FuncOp>()), bytes / (slots * each)));
}

namespace {
struct ScheduleCopies : impl::ScheduleCopiesBase<ScheduleCopies> {
  using ScheduleCopiesBase::ScheduleCopiesBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    const auto asked = func->getAttrOfType<IntegerAttr>("tile.stages");
    const HeldRegisters held = heldRegisters(func);
    const auto *const engine = llvm::find_if(engines, [&](auto &each) { return each.capability <= capability; });
    if (engine == std::end(engines))
      return;
    func.walk([&](scf::ForOp loop) {
      const auto own = loop->getAttrOfType<IntegerAttr>("tile.stages"), wanted = own ? own : asked;
      Schedule(loop, engine->name)
          .write(wanted ? wanted.getInt() : int64_t(stages), limit, /*exactly=*/bool(wanted), held.lookup(loop));
    });
    func.walk([](scf::WhileOp loop) {
      for (auto load : loop.getAfterBody()->getOps<tile::LoadOp>())
        if (llvm::any_of(load->getUsers(), isConvertedToOperand))
          refuse(load, "its loop may end before any iteration");
    });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// A barrier between two accesses of one program that must not overtake each other.
//
// Threads run at their own pace, so that a value that one thread wrote and another reads needs a barrier between, and
// so does a value that one reads and another overwrites. The pass walks the program with the accesses that no barrier
// has come after yet, the *pending* ones, and puts a barrier before the first access that one of them conflicts with.
// The end of a loop's body is followed by its beginning: bodies are walked twice.
//
// In shared memory accesses conflict when they share bytes and one of them writes. In global memory they do when their
// views may overlap and one of them writes, unless every thread goes to the same elements both times: the same offsets,
// in the same layout, each element in one thread.

#include "lowering/gpu/Passes.h"

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_INSERTBARRIERS
#include "lowering/gpu/Passes.h.inc"

using simt::Hw;

namespace {

/// One access of memory, as far as others may conflict with it.
struct Access {
  bool writes = false;
  simt::BufferOp buffer;         // of shared memory …
  Value view;                    // … or of global memory; neither: all of it
  Attribute layout;              // when each thread's elements are its own
  SmallVector<Value, 4> offsets; // with the layout: which elements
  Operation *op = nullptr;

  bool operator==(const Access &other) const {
    return writes == other.writes && buffer == other.buffer && view == other.view && layout == other.layout &&
           offsets == other.offsets;
  }
};

class Barriers {
public:
  void walk(Block &block);
  using Pending = SmallVector<Access>;

private:
  void visit(Operation &op);
  void visit(const Access &access);
  void visitLoop(scf::ForOp loop);
  void remember(const Access &access) {
    if (!llvm::is_contained(pending, access))
      pending.push_back(access);
  }

  Pending pending;
};

/// The bytes of a buffer, from first to behind the last.
std::pair<int64_t, int64_t> bytesOf(simt::BufferOp buffer) {
  const int64_t begin = buffer.getOffset().value_or(0);
  return {begin, begin + cast<MemRefType>(buffer.getType()).getDimSize(0)};
}

bool conflict(const Access &a, const Access &b) {
  if (!a.writes && !b.writes)
    return false;
  if (bool(a.buffer) != bool(b.buffer))
    return false;
  if (a.buffer) {
    const auto [firstBegin, firstEnd] = bytesOf(a.buffer);
    const auto [secondBegin, secondEnd] = bytesOf(b.buffer);
    return firstBegin < secondEnd && secondBegin < firstEnd;
  }
  if (!a.view || !b.view)
    return true;
  if (!mayOverlap(a.view, b.view))
    return false;
  const bool sameElements = a.view == b.view && a.layout && a.layout == b.layout && a.offsets == b.offsets;
  return !sameElements;
}

/// Each element of the tile is in one thread.
bool isOwned(simt::LayoutAttr layout) {
  const simt::TileLayout own = layout.getLayout();
  return !own.replicated(Hw::lane) && !own.replicated(Hw::warp);
}

template <class Op> Access globalAccess(Op op, Value tile, bool writes) {
  Access access{.writes = writes, .view = op.getView(), .op = op};
  const simt::LayoutAttr layout = simt::layoutOf(tile);
  constexpr bool hasRows = std::is_same_v<Op, tile::GatherOp> || std::is_same_v<Op, tile::ScatterOp>;
  if (!hasRows && isOwned(layout)) {
    access.layout = layout;
    access.offsets.assign(op.getOffsets().begin(), op.getOffsets().end());
  }
  return access;
}

simt::BufferOp bufferOf(Value value) { return value.getDefiningOp<simt::BufferOp>(); }

std::string describe(const Access &access) {
  const char *const what = access.writes ? "written" : "read";
  return std::string(access.buffer ? "shared memory " : "global memory ") + what;
}

void Barriers::visit(const Access &access) {
  for (const Access &before : pending)
    if (conflict(before, access)) {
      OpBuilder builder(access.op);
      simt::BarrierOp::create(
          builder, access.op->getLoc(),
          builder.getStringAttr(describe(before) + ", then " + (access.writes ? "written" : "read")));
      pending.clear();
      break;
    }
  remember(access);
}

void Barriers::visitLoop(scf::ForOp loop) {
  const Pending before = pending;
  for (int round = 0; round < 2; ++round) {
    walk(*loop.getBody());
    for (Access &access : pending)
      access.layout = {}; // the next round's offsets may be others
    for (const Access &access : before)
      remember(access); // no round at all
  }
}

void Barriers::visit(Operation &op) {
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](scf::ForOp loop) { visitLoop(loop); })
      .Case([&](scf::IfOp branch) {
        const Pending before = pending;
        walk(branch.getThenRegion().front());
        const Pending after = pending;
        pending = before;
        if (!branch.getElseRegion().empty())
          walk(branch.getElseRegion().front());
        for (const Access &access : after)
          remember(access);
      })
      .Case([&](simt::BarrierOp) { pending.clear(); })
      .Case([&](simt::WriteOp write) {
        visit(Access{.writes = true, .buffer = bufferOf(write.getBuffer()), .op = write});
      })
      .Case([&](simt::ReadOp read) { visit(Access{.buffer = bufferOf(read.getBuffer()), .op = read}); })
      .Case([&](tile::LoadOp load) { visit(globalAccess(load, load.getResult(), false)); })
      .Case([&](tile::GatherOp gather) { visit(globalAccess(gather, gather.getResult(), false)); })
      .Case([&](tile::StoreOp store) { visit(globalAccess(store, store.getValue(), true)); })
      .Case([&](tile::ScatterOp scatter) { visit(globalAccess(scatter, scatter.getValue(), true)); })
      .Case([&](tile::AtomicAddOp add) {
        if (add.getOrder() == tile::MemoryOrder::Relaxed)
          visit(globalAccess(add, add.getResult(), true));
        else
          visit(Access{.writes = true, .op = add}); // orders all of global memory
      });
}

void Barriers::walk(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    visit(op);
}

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  using InsertBarriersBase::InsertBarriersBase;

  void runOnOperation() override {
    if (getOperation()->hasAttr("tile.kernel"))
      Barriers().walk(getOperation().front());
  }
};

} // namespace

} // namespace kiln::lowering::gpu

// Marks the loads that may be read again from memory where they are used.
//
// A loaded tile is a value: no later store changes it. It can stay a view of memory (`cpu.view`) when nothing that
// could write the same memory lies between the load and its last reader, or when that reader is itself a store of the
// same elements, element by element, in place:
//
//     %0 = tile.load %x[%n]                 // gets cpu.view: each element is read before it is overwritten
//     tile.store (%0 + 1), %x[%n]
//
// Every other load is copied into scratch memory where it stands.

#include "lowering/analysis/TileUses.h"
#include "lowering/cpu/Passes.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_FORWARDLOADS
#include "lowering/cpu/Passes.h.inc"

namespace {

bool writesOver(Operation *op, Value view) {
  return llvm::any_of(writtenViews(op), [&](Value written) { return mayOverlap(written, view); });
}

/// A store that overwrites exactly the elements it was computed from, each after it was read.
bool isInPlace(Operation *load, const Reader &reader) {
  auto from = dyn_cast<tile::LoadOp>(load);
  auto store = dyn_cast<tile::StoreOp>(reader.operand->getOwner());
  return from && store && reader.sameElement && from.getView() == store.getView() &&
         from.getOffsets() == store.getOffsets();
}

bool staysView(Operation *load, Value view) {
  Block *block = load->getBlock();
  for (const Reader &reader : readersOf(load->getResult(0))) {
    Operation *user = reader.operand->getOwner(), *last = block->findAncestorOpInBlock(*user);
    for (Operation *op = load->getNextNode(); op && op != last; op = op->getNextNode())
      if (writesOver(op, view))
        return false;
    if (writesOver(last, view) && !(last == user && isInPlace(load, reader)))
      return false;
  }
  return true;
}

struct ForwardLoads : impl::ForwardLoadsBase<ForwardLoads> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      Value view;
      if (auto load = dyn_cast<tile::LoadOp>(op))
        view = load.getView();
      else if (auto gather = dyn_cast<tile::GatherOp>(op))
        view = gather.getView();
      if (view && staysView(op, view))
        op->setAttr("cpu.view", UnitAttr::get(op->getContext()));
    });
  }
};

} // namespace
} // namespace kiln::lowering::cpu

// Marks the loads whose elements may be read from memory at their uses.
//
// A loaded tile is a value: no later store changes it. It can stay a view of memory (`cpu.view`) if no operation
// between the load and its last reader writes that memory or orders all accesses. It can also stay one if the reader is
// a store that overwrites the elements in place, each after it was read:
//
//     %0 = tile.load %x[%n]                 // gets cpu.view: each element is read before it is overwritten
//     tile.store (%0 + 1), %x[%n]
//
// A gather's index tiles are read where the gather's elements are read.
//
// Every other load is copied to scratch memory at its position.

#include "lowering/Passes.h"
#include "lowering/analysis/TileUses.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_FORWARDLOADS
#include "lowering/cpu/Passes.h.inc"

namespace {

/// A store that overwrites exactly the elements that it was computed from, each after it was read.
bool isInPlace(tile::AccessOp load, const Reader &reader) {
  auto store = dyn_cast<tile::AccessOp>(reader.operand->getOwner());
  return store && store.isStore() && reader.sameElement && isSamePlace(load, store);
}

/// Decides which loads stay views, with memoisation, because a load's answer depends on the loads that read it.
class Views {
public:
  bool stays(tile::AccessOp load) {
    if (const auto known = answers.find(load); known != answers.end())
      return known->second;
    const bool answer = asksStays(load);
    return answers[load] = answer;
  }

private:
  /// Operands that read a tile, and whether each reads the elements at its own positions only.
  using Readers = llvm::SmallMapVector<OpOperand *, bool, 4>;

  /// The readers of a loaded tile. If it is the index of another load that stays a view, its readers are that load's.
  const Readers &lastReadersOf(Value tile) {
    if (const auto known = lastReaders.find(tile); known != lastReaders.end())
      return *known->second;
    auto readers = std::make_unique<Readers>();
    const auto add = [&](OpOperand *operand, bool sameElement) {
      const auto [entry, isNew] = readers->try_emplace(operand, sameElement);
      entry->second &= sameElement;
    };
    for (const Reader &reader : readersOf(tile)) {
      add(reader.operand, reader.sameElement);
      Operation *user = reader.operand->getOwner();
      if (isLoad(user) && stays(cast<tile::AccessOp>(user)))
        for (const auto &[operand, sameElement] : lastReadersOf(user->getResult(0)))
          add(operand, /*sameElement=*/false);
    }
    return *(lastReaders[tile] = std::move(readers));
  }

  bool asksStays(tile::AccessOp load) {
    const Value view = load.getView();
    Block *block = load->getBlock();
    const Readers &readers = lastReadersOf(load->getResult(0));
    const auto ancestor = [&](OpOperand *operand) { return block->findAncestorOpInBlock(*operand->getOwner()); };
    if (readers.empty())
      return true;
    Operation *last = load;
    for (const auto &[operand, sameElement] : readers)
      if (Operation *op = ancestor(operand); last->isBeforeInBlock(op))
        last = op;
    for (Operation *op = load->getNextNode(); op && op != last; op = op->getNextNode())
      if (touches(op, view))
        return false;
    return !touches(last, view) || llvm::all_of(readers, [&](const auto &reader) {
      const auto [operand, sameElement] = reader;
      return ancestor(operand) != last || (last == operand->getOwner() && isInPlace(load, {operand, sameElement}));
    });
  }

  llvm::DenseMap<Operation *, bool> answers;
  llvm::DenseMap<Value, std::unique_ptr<Readers>> lastReaders;
};

struct ForwardLoads : impl::ForwardLoadsBase<ForwardLoads> {
  void runOnOperation() override {
    SmallVector<tile::AccessOp> loads;
    getOperation().walk([&](tile::AccessOp access) {
      if (access.isLoad())
        loads.push_back(access);
    });
    Views views;
    for (tile::AccessOp load : llvm::reverse(loads)) // readers first, which avoids deep recursion
      if (views.stays(load))
        load->setAttr("cpu.view", UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace kiln::lowering::cpu

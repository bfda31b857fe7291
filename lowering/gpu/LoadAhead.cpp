// Loads the operands of a matmul's epilogue, such as a residual, before the main loop. Memory delivers them to
// registers while the tensor cores multiply.
//
//     s = for … { … multiply … }                     r = load residual[m, n] {simt.ahead}
//     r = load residual[m, n]        ── becomes ──►   s = for … { … multiply … }
//     store s + r                                     store s + r
//
// A load does not pass a write that may overlap its view, or an access that orders others. A load checks its bounds, so
// it is safe even if the loop has no iteration.

#include "lowering/gpu/Pipeline.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

/// Registers of a loop of products besides tiles: ptxas 13.0 needs 30 to 45 in the kernels of GPT-2.
static constexpr int64_t registersOfLoop = 48;

/// The registers of a thread for `tile`, of whose elements `vector` share registers.
static int64_t registersFor(RankedTensorType tile, int64_t vector = 1) {
  const int64_t elements = simt::layoutOf(tile).getLayout().numStored();
  return elements / vector * llvm::divideCeil(vector * tile.getElementTypeBitWidth(), 32);
}

/// The registers of a thread for the tile of `load`, as memory delivers it.
static int64_t registersOf(tile::LoadOp load) { return registersFor(load.getType(), getVector(load)); }

namespace {
/// The tiles that are live at a point of a block, and their registers.
struct LiveTiles {
  void add(Value value) {
    if (simt::layoutOf(value) && !matchPattern(value, m_Constant()) && tiles.insert(value).second)
      registers += registersOf(value);
  }
  void remove(Value value) {
    if (tiles.erase(value))
      registers -= registersOf(value);
  }
  static int64_t registersOf(Value value) { return registersFor(cast<RankedTensorType>(value.getType())); }
  llvm::DenseSet<Value> tiles;
  int64_t registers = 0;
};
} // namespace

/// Walks a block from its end to its begin.
static void findHeld(Block &block, HeldRegisters &held) {
  LiveTiles live;
  for (Operation &op : llvm::reverse(block)) {
    for (const Value result : op.getResults())
      live.add(result);
    op.walk([&](Operation *user) {
      for (Value operand : user->getOperands())
        if (!op.isAncestor(operand.getParentBlock()->getParentOp()))
          live.add(operand);
    });
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      int64_t &registers = held[loop] = live.registers;
      // The accumulators are among the results of the loop.
      for (const Value init : llvm::SmallDenseSet<Value>(loop.getInitArgs().begin(), loop.getInitArgs().end()))
        if (live.tiles.contains(init))
          registers -= LiveTiles::registersOf(init);
    }
    for (const Value result : op.getResults())
      live.remove(result);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        findHeld(inner, held);
  }
}

HeldRegisters heldRegisters(func::FuncOp func) {
  HeldRegisters held;
  for (Block &block : func.getBody())
    findHeld(block, held);
  return held;
}

void markLoadsAhead(scf::ForOp loop, int64_t held, int64_t programs) {
  const DominanceInfo dominance;
  const auto isKnown = [&](Value operand) { return dominance.properlyDominates(operand, loop); };
  const int64_t warps = warpsOf(loop->getParentOfType<func::FuncOp>());
  int64_t left = registersOfThread(warps, programs) - registersOfLoop - held;
  SmallVector<Operation *> passed; // accesses that a load may not be able to pass
  const auto pass = [&](Operation *op) {
    if (auto access = dyn_cast<tile::AccessOp>(op); access && (!access.isLoad() || access.ordersAll()))
      passed.push_back(op);
  };
  loop.walk(pass);
  for (Operation *op = loop->getNextNode(); op && left > 0 && op->getNumRegions() == 0; op = op->getNextNode()) {
    auto load = dyn_cast<tile::LoadOp>(op);
    const int64_t registers = load ? registersOf(load) : 0;
    if (!load || registers > left || !llvm::all_of(load->getOperands(), isKnown) ||
        llvm::any_of(passed, [&](Operation *each) { return touches(each, load.getView()); })) {
      pass(op);
      continue;
    }
    left -= registers;
    load->setAttr(aheadName, UnitAttr::get(load.getContext()));
  }
}

void moveLoadsAhead(scf::ForOp loop) {
  for (Operation *op = loop->getNextNode(), *next = nullptr; op && op->getNumRegions() == 0; op = next) {
    next = op->getNextNode();
    if (op->hasAttr(aheadName))
      op->moveBefore(loop);
  }
}

} // namespace kiln::lowering::gpu

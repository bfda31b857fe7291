// Loads the operands of a matmul's epilogue, such as a residual, before the main loop. Memory delivers them to
// registers while the tensor cores multiply.
//
//     s = for … { … multiply … }                     r = load residual[m, n] {simt.ahead}
//     r = load residual[m, n]        ── becomes ──►   s = for … { … multiply … }
//     store s + r                                     store s + r
//
// A load does not pass a write that may overlap its view, or an access that orders others. A load checks its bounds, so
// it is safe even if the loop has no iteration.

#include "lowering/gpu/LoadAhead.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/Analysis/Liveness.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

/// Registers of an SM and of a thread (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
static constexpr int64_t registersOfSm = 65536, mostRegisters = 255;
/// Registers of a loop of products besides tiles: ptxas 13.0 needs 30 to 45 in the kernels of GPT-2.
static constexpr int64_t registersOfLoop = 48;

/// The registers of a thread for `tile`, of whose elements `vector` share registers.
static int64_t registersFor(RankedTensorType tile, int64_t vector = 1) {
  const int64_t elements = simt::layoutOf(tile).getLayout().numStored();
  return elements / vector * llvm::divideCeil(vector * tile.getElementTypeBitWidth(), 32);
}

/// The registers of a thread for the tile of `load`, as memory delivers it.
static int64_t registersOf(tile::LoadOp load) {
  const auto vector = load->getAttrOfType<IntegerAttr>("simt.vector");
  return registersFor(load.getType(), vector ? vector.getInt() : 1);
}

/// The registers of a thread for further tiles while `loop` runs.
static int64_t registersBeside(scf::ForOp loop, int64_t programs) {
  auto func = loop->getParentOfType<func::FuncOp>();
  int64_t left = std::min(mostRegisters, registersOfSm / (32 * warpsOf(func) * programs)) - registersOfLoop;
  Liveness liveness(func);
  // The accumulators are among the results of the loop.
  for (const Value value : liveness.getLiveness(loop->getBlock())->currentlyLiveValues(loop))
    if (auto tile = dyn_cast<RankedTensorType>(value.getType());
        tile && !matchPattern(value, m_Constant()) && !llvm::is_contained(loop.getInitArgs(), value))
      left -= registersFor(tile);
  return left;
}

void loadAhead(scf::ForOp loop, int64_t programs) {
  const DominanceInfo dominance;
  const auto isKnown = [&](Value operand) { return dominance.properlyDominates(operand, loop); };
  int64_t left = registersBeside(loop, programs);
  SmallVector<Operation *> passed; // accesses that a load may not be able to pass
  const auto pass = [&](Operation *op) {
    if (auto access = dyn_cast<tile::AccessOp>(op); access && (!access.isLoad() || access.ordersAll()))
      passed.push_back(op);
  };
  loop.walk(pass);
  for (Operation *op = loop->getNextNode(), *next = nullptr; op && left > 0 && op->getNumRegions() == 0; op = next) {
    next = op->getNextNode();
    auto load = dyn_cast<tile::LoadOp>(op);
    const int64_t registers = load ? registersOf(load) : 0;
    if (!load || registers > left || !llvm::all_of(load->getOperands(), isKnown) ||
        llvm::any_of(passed, [&](Operation *each) { return touches(each, load.getView()); })) {
      pass(op);
      continue;
    }
    left -= registers;
    load->moveBefore(loop);
    load->setAttr(aheadName, UnitAttr::get(load.getContext()));
  }
}

} // namespace kiln::lowering::gpu

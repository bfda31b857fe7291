// Decides which loop-carried tiles can be updated in place.
//
// A loop has one buffer for each carried tile. The yielded value is computed in that buffer if two conditions hold. The
// old value is not read afterwards. And the yielded value is a product that adds to the old value, or the result of an
// inner loop that starts with it:
//
//     %r = scf.for … iter_args(%acc = %init) -> (tensor<128x128xf32>) {
//       %new = tile.dot %a, %b, %acc          // adds into the buffer of %acc
//       scf.yield %new
//     } {cpu.in_place = array<i1: true>}

#include "lowering/Passes.h"
#include "lowering/analysis/LoopCarried.h"
#include "lowering/analysis/TileUses.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_PINCARRIEDTILES
#include "lowering/cpu/Passes.h.inc"

namespace {

/// Whether `writer` may overwrite the buffer of `carried`: it reads it as `input`, element by element if `sameElement`,
/// and all other readers precede it.
bool canOverwrite(Value carried, Operation *writer, OpOperand &input, bool sameElement) {
  bool feeds = false;
  for (const Reader &reader : readersOf(carried)) {
    Operation *user = reader.operand->getOwner();
    if (reader.operand == &input && (reader.sameElement || !sameElement)) {
      feeds = true;
      continue;
    }
    Operation *ancestor = writer->getBlock()->findAncestorOpInBlock(*user);
    if (!ancestor || ancestor == writer || !ancestor->isBeforeInBlock(writer))
      return false;
  }
  return feeds;
}

bool isInPlace(const LoopCarried &loop, unsigned index) {
  Value carried = loop.arguments[index];
  if (!isa<RankedTensorType>(carried.getType()))
    return false;
  auto yielded = dyn_cast<OpResult>(loop.yielded[index].get());
  if (!yielded || yielded.getOwner()->getBlock() != loop.body)
    return false;
  if (auto dot = dyn_cast<tile::DotOp>(yielded.getOwner()))
    return canOverwrite(carried, dot, dot.getAccMutable(), /*sameElement=*/true);
  if (const std::optional<LoopCarried> inner = LoopCarried::of(yielded.getOwner())) {
    OpOperand &init = inner->inits[yielded.getResultNumber()];
    return init.get() == carried && canOverwrite(carried, inner->op, init, /*sameElement=*/true);
  }
  return false;
}

struct PinCarriedTiles : impl::PinCarriedTilesBase<PinCarriedTiles> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      const std::optional<LoopCarried> loop = LoopCarried::of(op);
      if (!loop)
        return;
      SmallVector<bool> inPlace;
      for (unsigned i = 0; i < loop->arguments.size(); ++i)
        inPlace.push_back(isInPlace(*loop, i));
      if (llvm::is_contained(inPlace, true))
        op->setAttr("cpu.in_place", DenseBoolArrayAttr::get(op->getContext(), inPlace));
    });
  }
};

} // namespace
} // namespace kiln::lowering::cpu

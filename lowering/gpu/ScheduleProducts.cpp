// Begins products early and waits for them late, so that tensor cores multiply while the threads compute.
//
//     s = multiply_rows q, K                        s = multiply_rows q, K
//     p = f(s)                                      t = multiply_rows o, V
//     t = multiply_rows o, V                        s', acc' = wait_multiply 1, s, acc
//     d = g(p, t)                 ── becomes ──►    p = f(s')
//     acc = multiply_rows d, K plus acc             t' = wait_multiply 0, t
//                                                   d = g(p, t')
//                                                   acc = multiply_rows d, K plus acc'
//
// Products complete in the order in which they begin. So the first wait of an iteration is also one for the products of
// the iteration before, and returns their accumulators.

#include "lowering/gpu/ScheduleProducts.h"

#include "lowering/gpu/Hazards.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kiln::lowering::gpu {

bool mayRunOn(scf::ForOp loop, Operation *product, ArrayRef<Operation *> products) {
  if (!product->hasOneUse() || *product->user_begin() != loop.getBody()->getTerminator())
    return false;
  SetVector<Operation *> before;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return loop->isProperAncestor(op); };
  if (failed(getBackwardSlice(product->getOperand(0), &before, options)))
    return false;
  return llvm::any_of(before, [&](Operation *op) { return llvm::is_contained(products, op); });
}

/// The tiles that a product takes: its rows, and its accumulator if it has one.
static SmallVector<Value> tilesOf(Operation *product) {
  return llvm::filter_to_vector(product->getOperands(),
                                [](Value operand) { return isa<RankedTensorType>(operand.getType()); });
}

/// Moves `op` up to its last operand, but not above `begin`, and so what it is computed from.
static void moveUp(Operation *op, Operation *begin, SmallPtrSetImpl<Operation *> &moved) {
  Operation *after = begin;
  for (const Value operand : op->getOperands()) {
    Operation *const from = operand.getDefiningOp();
    if (!from || from->getBlock() != op->getBlock())
      continue;
    if (begin->isBeforeInBlock(from) && isPure(from) && from->getNumRegions() == 0 && moved.insert(from).second)
      moveUp(from, begin, moved);
    if (after->isBeforeInBlock(from))
      after = from;
  }
  op->moveAfter(after);
}

/// The first operation of `block` that uses one of `values`.
static Operation *firstUse(Block &block, ArrayRef<Value> values) {
  Operation *first = block.getTerminator();
  for (const Value value : values)
    for (Operation *user : value.getUsers())
      if (Operation *const here = block.findAncestorOpInBlock(*user); here && here->isBeforeInBlock(first))
        first = here;
  return first;
}

/// Waits for accumulators before `use`, for all products except those that begin from `from` on.
static void waitFor(ArrayRef<Value> values, Operation *from, Operation *use) {
  int64_t pending = 0;
  for (Operation *op = from; op != use; op = op->getNextNode())
    pending += beginsProduct(op);
  OpBuilder builder(use);
  const TypeRange types = ValueRange(values).getTypes();
  auto wait = simt::WaitMultiplyOp::create(builder, values.front().getLoc(), types, pending, values);
  for (const auto [before, after] : llvm::zip_equal(values, wait.getResults()))
    Value(before).replaceUsesWithIf(after, [&](OpOperand &each) {
      return each.getOwner() != wait && wait->getBlock()->findAncestorOpInBlock(*each.getOwner());
    });
}

Operation *scheduleProducts(scf::ForOp loop, Operation *begin, ArrayRef<Operation *> products,
                            ArrayRef<Operation *> runOn) {
  Block &body = *loop.getBody();
  const auto isOutside = [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); };
  Operation *last = begin, *lastAtBegin = begin;
  for (Operation *product : products) {
    const bool isAtBegin = last == lastAtBegin && llvm::all_of(tilesOf(product), isOutside);
    SmallPtrSet<Operation *, 16> moved;
    moveUp(product, last, moved);
    last = product;
    if (isAtBegin)
      lastAtBegin = product;
  }

  // Accumulators of products that run on, in the next iteration and after the loop.
  SmallVector<Value> carried, results;
  for (Operation *product : runOn) {
    const unsigned index = product->getUses().begin()->getOperandNumber();
    carried.push_back(loop.getRegionIterArg(index));
    results.push_back(loop.getResult(index));
  }
  if (Operation *const use = firstUse(body, carried); use->isBeforeInBlock(products.front()))
    waitFor(std::exchange(carried, {}), &body.front(), use);
  for (Operation *product : products)
    if (!llvm::is_contained(runOn, product)) {
      SmallVector<Value> values = {product->getResult(0)};
      values.append(std::exchange(carried, {}));
      waitFor(values, product->getNextNode(), firstUse(body, values));
    }
  if (!results.empty())
    waitFor(results, loop->getNextNode(), loop->getNextNode());
  return lastAtBegin;
}

} // namespace kiln::lowering::gpu

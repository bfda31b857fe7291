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
// Products complete in the order in which they begin. So the first wait of an iteration also covers the products of the
// iteration before. It returns their accumulators, unless these are used before.

#include "lowering/gpu/Pipeline.h"

#include "lowering/gpu/Hazards.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kiln::lowering::gpu {

/// PTX's limit of the products that wgmma.wait_group leaves pending.
static constexpr int64_t maxPending = 7;

/// Whether no register of `tile` gets its value in an iteration before one of `products` is complete. Where the side of
/// a selection is known at compile time, the registers of the other side are not written.
static bool follows(Value tile, scf::ForOp loop, ArrayRef<Operation *> products) {
  Operation *const op = tile.getDefiningOp();
  if (!op || !loop->isProperAncestor(op))
    return false;
  if (llvm::is_contained(products, op))
    return true;
  const auto here = [&](Value value) { return follows(value, loop, products); };
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    const Value yes = select.getTrueValue(), no = select.getFalseValue();
    const auto isSafe = [&](Value value) { return loop.isDefinedOutsideOfLoop(value) || here(value); };
    return here(select.getCondition()) || (isSafe(yes) && isSafe(no) && (here(yes) || here(no)));
  }
  if (OpTrait::hasElementwiseMappableTraits(op))
    return llvm::any_of(op->getOperands(), here);
  return isa<simt::ConvertOp, tile::ReshapeOp, tile::TransposeOp>(op) && here(op->getOperand(0));
}

bool mayRunOn(scf::ForOp loop, Operation *product, ArrayRef<Operation *> products) {
  return product->hasOneUse() && *product->user_begin() == loop.getBody()->getTerminator() &&
         follows(product->getOperand(0), loop, products);
}

/// The tiles that a product takes: its rows, and its accumulator if it has one.
static SmallVector<Value> tilesOf(Operation *product) {
  return llvm::filter_to_vector(product->getOperands(),
                                [](Value operand) { return isa<RankedTensorType>(operand.getType()); });
}

/// Moves `op` and the operations that it is computed from up to `begin` in their order, each after its last operand.
static void moveUp(Operation *op, Operation *begin) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *from) {
    return from->getBlock() == op->getBlock() && begin->isBeforeInBlock(from) &&
           (from == op || (isPure(from) && from->getNumRegions() == 0));
  };
  [[maybe_unused]] const LogicalResult result = getBackwardSlice(op, &slice, options);
  assert(succeeded(result));
  SmallVector<Operation *> inOrder(slice.getArrayRef());
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  Operation *after = begin;
  for (Operation *each : inOrder) {
    for (const Value operand : each->getOperands())
      if (Operation *const from = operand.getDefiningOp();
          from && from->getBlock() == each->getBlock() && after->isBeforeInBlock(from))
        after = from;
    each->moveAfter(after);
    after = each;
  }
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
  auto wait =
      simt::WaitMultiplyOp::create(builder, values.front().getLoc(), types, std::min(pending, maxPending), values);
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
    if (last->isBeforeInBlock(product)) { // else it begins before the product that `begin` waits for
      moveUp(product, last);
      last = product;
    }
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
  if (Operation *const use = firstUse(body, carried); !products.front()->isBeforeInBlock(use))
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

// Readers of tiles through inlinable operations, and overlap of views.

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln::lowering {

bool isElementwise(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return false;
  return isa_and_nonnull<arith::ArithDialect>(op->getDialect()) || op->getName().getDialectNamespace() == "math";
}

bool isInlinable(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  return isElementwise(op) || op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tile::IotaOp, tile::SplatOp, tile::ReshapeOp, tile::BroadcastOp, tile::TransposeOp>(op);
}

SmallVector<Reader> readersOf(Value value) {
  SmallVector<Reader> readers;
  SmallVector<std::pair<Value, bool>> work = {{value, true}};
  llvm::SmallDenseSet<std::pair<Value, int>> seen;
  while (!work.empty()) {
    auto [current, same] = work.pop_back_val();
    if (!seen.insert({current, same}).second)
      continue;
    for (OpOperand &use : current.getUses()) {
      Operation *user = use.getOwner();
      if (isInlinable(user))
        work.push_back({user->getResult(0), same && isElementwise(user)});
      else
        readers.push_back({&use, same});
    }
  }
  return readers;
}

bool mayOverlap(Value a, Value b) {
  auto x = dyn_cast<BlockArgument>(a), y = dyn_cast<BlockArgument>(b);
  if (a == b || !x || !y)
    return true;
  auto function = dyn_cast<func::FuncOp>(x.getOwner()->getParentOp());
  auto pairs = function ? function->getAttrOfType<ArrayAttr>("tile.disjoint") : ArrayAttr();
  if (!pairs)
    return true;
  int64_t low = std::min(x.getArgNumber(), y.getArgNumber()), high = std::max(x.getArgNumber(), y.getArgNumber());
  for (Attribute entry : pairs) {
    auto pair = dyn_cast<DenseI64ArrayAttr>(entry);
    if (pair && pair.size() == 2 && pair[0] == low && pair[1] == high)
      return false;
  }
  return true;
}

SmallVector<Value> writtenViews(Operation *op) {
  SmallVector<Value> views;
  op->walk([&](Operation *inner) {
    if (auto store = dyn_cast<tile::StoreOp>(inner))
      views.push_back(store.getView());
    else if (auto scatter = dyn_cast<tile::ScatterOp>(inner))
      views.push_back(scatter.getView());
    else if (auto atomic = dyn_cast<tile::AtomicAddOp>(inner))
      views.push_back(atomic.getView());
  });
  return views;
}

} // namespace kiln::lowering

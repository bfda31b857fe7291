// Readers of tiles through inlinable operations, and overlap of views.

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

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
  return isElementwise(op) || op->hasTrait<OpTrait::ConstantLike>() || isa<tile::IotaOp, tile::MoveOp>(op);
}

bool followsFromPlace(Value tile) {
  SmallVector<Value> work = {tile};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second)
      continue; // a scalar is the same everywhere
    Operation *op = value.getDefiningOp();
    if (!op || !isInlinable(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

bool isPlain(tile::MoveOp op) {
  return llvm::all_of(op.getMoveMap().getResults(),
                      [](AffineExpr expr) { return isa<AffineDimExpr, AffineConstantExpr>(expr); });
}

std::optional<int64_t> axisBelow(tile::MoveOp op, int64_t axis) {
  for (auto [inner, expr] : llvm::enumerate(op.getMoveMap().getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && dim.getPosition() == axis)
      return inner;
  return std::nullopt;
}

bool differsByUnits(Type from, Type to) {
  SmallVector<int64_t> a, b;
  llvm::copy_if(tile::shapeOf(from), std::back_inserter(a), [](int64_t extent) { return extent != 1; });
  llvm::copy_if(tile::shapeOf(to), std::back_inserter(b), [](int64_t extent) { return extent != 1; });
  return a == b;
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

bool walkUses(Value tile, function_ref<Walk(OpOperand &)> visit) {
  SmallVector<Value> work = {tile};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value current = work.pop_back_val();
    if (!seen.insert(current).second)
      continue;
    for (OpOperand &use : current.getUses()) {
      const Walk next = visit(use);
      if (next == Walk::giveUp)
        return false;
      if (next == Walk::follow)
        work.push_back(use.getOwner()->getResult(0));
    }
  }
  return true;
}

SmallVector<tile::StoreOp> storesOf(Value tile) {
  SmallVector<tile::StoreOp> stores;
  const bool onlyStores = walkUses(tile, [&](OpOperand &use) {
    if (auto store = dyn_cast<tile::StoreOp>(use.getOwner())) {
      stores.push_back(store);
      return Walk::leave;
    }
    auto reshape = dyn_cast<tile::ReshapeOp>(use.getOwner());
    const bool keepsOrder = reshape && differsByUnits(use.get().getType(), reshape.getType());
    return keepsOrder || isElementwise(use.getOwner()) ? Walk::follow : Walk::giveUp;
  });
  if (!onlyStores)
    return {};
  llvm::sort(stores,
             [](Operation *a, Operation *b) { return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b); });
  stores.erase(llvm::unique(stores), stores.end());
  return stores;
}

StringRef tableOf(Value view) {
  auto part = view.getDefiningOp<memref::ViewOp>();
  auto table = part ? part.getSource().getDefiningOp<memref::GetGlobalOp>() : memref::GetGlobalOp();
  return table ? table.getName() : StringRef();
}

Attribute viewFact(Value view, StringRef name) {
  const auto argument = dyn_cast<BlockArgument>(view);
  auto function = argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  return function ? function.getArgAttr(argument.getArgNumber(), name) : Attribute();
}

bool mayOverlap(Value a, Value b) {
  if (!tableOf(a).empty() || !tableOf(b).empty())
    return false;
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

bool touches(Operation *op, Value view) {
  const WalkResult walk = op->walk([&](tile::AccessOp access) {
    const bool writes = access.writesView() && mayOverlap(access.getView(), view);
    return writes || access.ordersAll() ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

bool isLoad(Operation *op) {
  auto access = dyn_cast_or_null<tile::AccessOp>(op);
  return access && access.isLoad();
}

bool isSamePlace(tile::AccessOp a, tile::AccessOp b) {
  return a.getView() == b.getView() && a.getSubscripts() == b.getSubscripts() && a.getIndexRank() == 0 &&
         a.getTile().getType().getShape() == b.getTile().getType().getShape();
}

} // namespace kiln::lowering

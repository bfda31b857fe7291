// Finds stores that can run inside the product whose result they write, directly from its registers.
//
//     %y = scf.for … iter_args(%acc = %zero) { … %d = tile.dot %a, %b, %acc … }  // gets cpu.epilogue = array<i1: true>
//     %z = arith.addf %y, %bias
//     tile.store %z, %c[%m, %n]                                                  // runs in the loop's last step
//
// Such a store runs earlier than written, and block by block between the product's reads. So no operation in between
// may conflict with its accesses. Its other operands must be available before the product or be recomputable there.

#include "lowering/Passes.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_FUSEEPILOGUES
#include "lowering/cpu/Passes.h.inc"

namespace {

class Fusion {
public:
  /// `tile` is the result of `producer`, a product or the loop that carries one.
  Fusion(Operation *producer, Value tile) : producer(producer), tile(tile), block(producer->getBlock()) {}

  bool isPossible() {
    auto shape = tile::shapeOf(tile.getType());
    if (shape.size() < 2 || shape[shape.size() - 2] == 1 || shape.back() == 1)
      return false;
    stores = storesOf(tile);
    for (tile::StoreOp store : stores)
      if (store->getBlock() != block || !isKnown(store.getValue()) || !llvm::all_of(store.getOffsets(), isKnownFn()))
        return false;
    return !stores.empty() && mayMoveUp();
  }

private:
  /// Whether a value is available when the product runs: defined before it, or recomputable there.
  bool isKnown(Value value) {
    if (value == tile || !seen.insert(value).second)
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != block || op->isBeforeInBlock(producer))
      return true;
    if (op == producer)
      return false;
    if (auto access = dyn_cast<tile::AccessOp>(op); access && access.isLoad()) {
      if (!op->hasAttr("cpu.view"))
        return false;
      loads.push_back(access);
    } else if (isa<RankedTensorType>(value.getType()) ? !isInlinable(op) || movesElements(op) : !isScalar(op)) {
      return false;
    }
    return llvm::all_of(op->getOperands(), isKnownFn());
  }
  std::function<bool(Value)> isKnownFn() {
    return [this](Value value) { return isKnown(value); };
  }

  static bool movesElements(Operation *op) {
    auto reshape = dyn_cast<tile::ReshapeOp>(op);
    return reshape && isa<RankedTensorType>(reshape.getSource().getType()) &&
           !differsByUnits(reshape.getSource().getType(), reshape.getType());
  }

  static bool isScalar(Operation *op) {
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           llvm::none_of(op->getOperandTypes(), [](Type type) { return isa<RankedTensorType>(type); });
  }

  /// The ancestor of `op` in the block; null if there is none.
  Operation *placeOf(Operation *op) { return block->findAncestorOpInBlock(*op); }

  /// Whether `op` is executed in the product or after it, but before `end`.
  bool isBetween(Operation *op, Operation *end) {
    Operation *place = placeOf(op);
    return place && !place->isBeforeInBlock(producer) && place != end && place->isBeforeInBlock(end);
  }

  bool mayMoveUp() {
    auto function = producer->getParentOfType<func::FuncOp>();
    WalkResult result = function.walk([&](tile::AccessOp access) {
      const bool allowed = access.writesView() ? mayWriteAfter(access) : mayReadAfter(access);
      return allowed ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !result.wasInterrupted();
  }

  /// Whether no store moves up past a read of the memory that it writes, except of the same element.
  bool mayReadAfter(tile::AccessOp load) {
    SmallVector<Reader> readers = readersOf(load.getTile());
    for (tile::StoreOp store : stores) {
      if (!mayOverlap(load.getView(), store.getView()))
        continue;
      bool readsBetween = isBetween(load, store) || llvm::any_of(readers, [&](const Reader &reader) {
                            Operation *user = reader.operand->getOwner();
                            return isBetween(user, store) || user == store;
                          });
      if (readsBetween && !isSameElement(load, store))
        return false;
    }
    return true;
  }

  /// Whether `load` reads exactly the elements that `store` overwrites, and each only for the result of that element.
  bool isSameElement(tile::AccessOp load, tile::StoreOp store) {
    if (stores.size() != 1 || !isSamePlace(load, store))
      return false;
    SmallVector<Value> work = {load.getTile()};
    while (!work.empty())
      for (OpOperand &use : work.pop_back_val().getUses()) {
        Operation *user = use.getOwner();
        auto reshape = dyn_cast<tile::ReshapeOp>(user);
        auto dot = dyn_cast<tile::DotOp>(user);
        if (user == store || (dot && user == producer && &use == &dot.getAccMutable()))
          continue;
        if (!isElementwise(user) && !(reshape && !movesElements(reshape)))
          return false;
        work.push_back(user->getResult(0));
      }
    return true;
  }

  /// Whether no write or ordering atomic in between conflicts with the moved store or its loads.
  bool mayWriteAfter(tile::AccessOp write) {
    const auto allows = [&](tile::AccessOp moved) {
      return write == moved || !isBetween(write, moved) || !touches(write, moved.getView());
    };
    return llvm::all_of(stores, allows) && llvm::all_of(loads, allows);
  }

  Operation *producer;
  Value tile;
  Block *block;
  SmallVector<tile::StoreOp> stores;
  SmallVector<tile::AccessOp> loads; // read by the stores' values
  llvm::SmallDenseSet<Value> seen;
};

/// Whether a loop's result `index` is the accumulator of one product, with initial value zero.
bool isSum(scf::ForOp loop, unsigned index) {
  auto inPlace = loop->getAttrOfType<DenseBoolArrayAttr>("cpu.in_place");
  auto dot = loop.getBody()->getTerminator()->getOperand(index).getDefiningOp<tile::DotOp>();
  Value init = loop.getInitArgs()[index], carried = loop.getRegionIterArg(index);
  return inPlace && inPlace[index] && dot && dot.getAcc() == carried && carried.hasOneUse() &&
         (matchPattern(init, m_AnyZeroFloat()) || matchPattern(init, m_Zero()));
}

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  /// Whether a product's columns are complete vectors of 32-bit lanes; only such results can be stored from registers.
  bool hasWholeColumns(Value tile) { return tile::shapeOf(tile.getType()).back() % (vectorBits / 32) == 0; }

  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!loop && !isa<tile::DotOp>(op))
        return;
      SmallVector<bool> fused;
      for (auto [index, result] : llvm::enumerate(op->getResults()))
        fused.push_back(isa<RankedTensorType>(result.getType()) && (!loop || isSum(loop, index)) &&
                        hasWholeColumns(result) && Fusion(op, result).isPossible());
      if (llvm::is_contained(fused, true))
        op->setAttr("cpu.epilogue", DenseBoolArrayAttr::get(op->getContext(), fused));
    });
  }
};

} // namespace
} // namespace kiln::lowering::cpu

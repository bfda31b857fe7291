// The reference backend: a buffer for every tile, a plain loop nest for every operation.
//
// Operations are replaced in program order at their positions, so memory operations keep their order. A loaded tile is
// a copy that no later store changes. A loop has one buffer for each carried tile. The yielded tiles are written to
// these buffers at the end of the body, through temporaries if carried tiles are permuted.
//
//     %1 = arith.addf %0, %0 : tensor<8xf32>
//     // becomes
//     %b1 = memref.alloca() {alignment = 64} : memref<8xf32>
//     linalg.generic {…} ins(%b0, %b0 : …) outs(%b1 : memref<8xf32>) { … arith.addf … : f32 … }

#include "lowering/Passes.h"
#include "lowering/generic/TileBuffers.h"

#include "lowering/analysis/LoopCarried.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering::generic {

#define GEN_PASS_DEF_LOWERTOLINALG
#include "lowering/generic/Passes.h.inc"

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

static bool touchesTiles(Operation *op) {
  return llvm::any_of(op->getOperands(), isTile) || llvm::any_of(op->getResults(), isTile);
}

namespace {

class ReferenceLowering {
public:
  explicit ReferenceLowering(MLIRContext *context) : tiles(context), b(tiles.builder) {}

  LogicalResult lowerBlock(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      b.setInsertionPoint(&op);
      if (failed(lowerOperation(&op)))
        return failure();
    }
    return success();
  }

  /// Erases the replaced operations. Uses among them, including block arguments, are dropped first.
  void eraseReplaced() {
    for (Operation *op : replaced) {
      op->dropAllReferences();
      op->dropAllUses();
    }
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
  }

private:
  LogicalResult lowerOperation(Operation *op) {
    if (isa<scf::YieldOp>(op))
      return success(); // lowered with the loop or branch it ends
    if (const std::optional<LoopCarried> loop = LoopCarried::of(op))
      return lowerLoop(*loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return lowerBranch(branch);
    if (isa<tile::CheckOp, tile::PrintOp>(op) || touchesTiles(op)) {
      if (failed(lowerTileOperation(op)))
        return op->emitOpError("expected an operation that generic-lower-to-linalg knows; run tile-expand-ops first");
      replaced.push_back(op);
      return success();
    }
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(lowerBlock(block)))
          return failure();
    return success();
  }

  LogicalResult lowerTileOperation(Operation *op) {
    if (lowerSorts(tiles, op))
      return success();
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](tile::AccessOp access) { return lowerAccess(tiles, access); })
        .Case([&](tile::CheckOp check) { return lowerCheck(tiles, check), success(); })
        .Case([&](tile::PrintOp print) { return lowerPrint(tiles, print), success(); })
        .Case([&](tile::ReduceOp reduce) { return lowerReduce(tiles, reduce), success(); })
        .Case([&](tile::ScanOp scan) { return lowerScan(tiles, scan), success(); })
        .Case([&](tile::DotOp dot) { return lowerDot(tiles, dot), success(); })
        .Case([&](tile::IotaOp iota) { return lowerIota(iota), success(); })
        .Case([&](tile::MoveOp move) { return lowerMove(move), success(); })
        .Case([&](arith::ConstantOp constant) { return lowerConstant(constant); })
        .Default([&](Operation *other) { return lowerElementwise(other); });
  }

  void fill(Value tile, Value scalar) {
    tiles.generic(tile.getLoc(), tile::shapeOf(tile.getType()), {}, {}, tiles.create(tile),
                  [&](ValueRange) { return SmallVector<Value>{scalar}; });
  }

  LogicalResult lowerConstant(arith::ConstantOp op) {
    Location loc = op.getLoc();
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense)
      return failure();
    auto scalar = [&](Attribute value) -> Value { return arith::ConstantOp::create(b, loc, cast<TypedAttr>(value)); };
    if (dense.isSplat()) {
      fill(op.getResult(), scalar(dense.getSplatValue<Attribute>()));
      return success();
    }
    Value flat = tiles.flat(loc, tiles.create(op.getResult()));
    for (auto [position, value] : llvm::enumerate(dense.getValues<Attribute>()))
      tiles.write(loc, scalar(value), flat, tiles.index(loc, position));
    return success();
  }

  /// Applies the operation to each element. A scalar operand (a select's condition) is used directly.
  LogicalResult lowerElementwise(Operation *op) {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || !op->hasTrait<OpTrait::Elementwise>() ||
        !llvm::all_of(op->getResults(), isTile))
      return failure();
    Location loc = op->getLoc();
    auto shape = tile::shapeOf(op->getResult(0).getType());
    SmallVector<Value> operands = llvm::filter_to_vector(op->getOperands(), isTile), inputs, outputs;
    for (Value operand : operands)
      inputs.push_back(tiles.of(operand));
    for (Value result : op->getResults())
      outputs.push_back(tiles.create(result));
    SmallVector<AffineMap> maps(inputs.size(), b.getMultiDimIdentityMap(shape.size()));
    tiles.generic(loc, shape, inputs, maps, outputs, [&](ValueRange elements) {
      IRMapping scalars;
      for (auto [operand, element] : llvm::zip(operands, elements))
        scalars.map(operand, tiles.fromStored(loc, getElementTypeOrSelf(operand.getType()), element));
      Operation *scalar = b.clone(*op, scalars);
      for (Value result : scalar->getResults())
        result.setType(getElementTypeOrSelf(result.getType()));
      return SmallVector<Value>(scalar->getResults());
    });
    return success();
  }

  void lowerIota(tile::IotaOp op) {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    tiles.generic(loc, type.getShape(), {}, {}, tiles.create(op.getResult()), [&](ValueRange) -> SmallVector<Value> {
      Value position = linalg::IndexOp::create(b, loc, 0);
      return {arith::IndexCastOp::create(b, loc, type.getElementType(), position)};
    });
  }

  /// Copies each element from the position that the operation's map gives.
  void lowerMove(tile::MoveOp op) {
    Location loc = op.getLoc();
    Value source = op.getMoved(), result = op->getResult(0);
    if (!isTile(source) && !isTile(result)) {
      result.replaceAllUsesWith(source);
    } else if (!isTile(source)) {
      fill(result, source);
    } else if (!isTile(result)) {
      SmallVector<Value> position;
      for (AffineExpr expr : op.getMoveMap().getResults())
        position.push_back(tiles.index(loc, cast<AffineConstantExpr>(expr).getValue()));
      result.replaceAllUsesWith(tiles.read(loc, result.getType(), tiles.of(source), position));
    } else {
      const ArrayRef<int64_t> shape = tile::shapeOf(result.getType());
      tiles.generic(loc, shape, firstOf(tiles.of(source), op.getMoveMap(), shape), op.getMoveMap(),
                    tiles.create(result), [](ValueRange args) { return SmallVector<Value>{args[0]}; });
    }
  }

  /// The part of `buffer` that `map` accesses for `shape`; linalg derives its loops' extents from it.
  Value firstOf(Value buffer, AffineMap map, ArrayRef<int64_t> shape) {
    SmallVector<int64_t> sizes(cast<MemRefType>(buffer.getType()).getShape());
    for (auto [size, expr] : llvm::zip_equal(sizes, map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        size = shape[dim.getPosition()];
    if (llvm::equal(sizes, cast<MemRefType>(buffer.getType()).getShape()))
      return buffer;
    const auto all = [&](int64_t number) { return SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(number)); };
    return memref::SubViewOp::create(b, buffer.getLoc(), buffer, all(0), getAsIndexOpFoldResult(b.getContext(), sizes),
                                     all(1));
  }

  /// Replaces the yielded values by `scalars`, and copies the yielded tiles to `slots`, one for each tile. Tiles that
  /// are in another slot go through a temporary.
  void lowerYield(Operation *yield, ArrayRef<Value> slots) {
    Location loc = yield->getLoc();
    b.setInsertionPoint(yield);
    SmallVector<Value> yielded = llvm::filter_to_vector(yield->getOperands(), isTile), sources;
    for (auto [tile, slot] : llvm::zip_equal(yielded, slots)) {
      Value source = tiles.of(tile);
      if (source != slot && llvm::is_contained(slots, source)) {
        Value temporary = tiles.allocate(loc, tile.getType());
        tiles.copy(loc, source, temporary);
        source = temporary;
      }
      sources.push_back(source);
    }
    for (auto [source, slot] : llvm::zip(sources, slots))
      if (source != slot)
        tiles.copy(loc, source, slot);
    yield->setOperands(llvm::filter_to_vector(yield->getOperands(), [](Value v) { return !isTile(v); }));
  }

  /// Replaces the results of a loop or branch: scalars by those of `to`, tiles by their slots.
  void replaceResults(Operation *from, Operation *to, ArrayRef<Value> slots) {
    unsigned scalar = 0, tile = 0;
    for (Value result : from->getResults()) {
      if (isTile(result))
        tiles.bind(result, slots[tile++]);
      else
        result.replaceAllUsesWith(to->getResult(scalar++));
    }
    replaced.push_back(from);
  }

  LogicalResult lowerLoop(const LoopCarried &loop) {
    if (llvm::none_of(loop.arguments, isTile))
      return lowerBlock(*loop.body);
    const Location loc = loop.op->getLoc();
    SmallVector<Value> slots, scalars;
    for (OpOperand &init : loop.inits) {
      if (!isTile(init.get())) {
        scalars.push_back(init.get());
        continue;
      }
      slots.push_back(tiles.allocate(loc, init.get().getType()));
      tiles.copy(loc, tiles.of(init.get()), slots.back());
    }
    const LoopCarried lowered = loop.withCarried(b, scalars);
    lowered.op->setDiscardableAttrs(loop.op->getDiscardableAttrDictionary());
    unsigned scalar = 0, tile = 0;
    for (BlockArgument arg : loop.arguments) {
      if (isTile(arg))
        tiles.bind(arg, slots[tile++]);
      else
        arg.replaceAllUsesWith(lowered.arguments[scalar++]);
    }
    if (failed(lowerBlock(*lowered.body)))
      return failure();
    lowerYield(lowered.body->getTerminator(), slots);
    replaceResults(loop.op, lowered.op, slots);
    return success();
  }

  LogicalResult lowerBranch(scf::IfOp branch) {
    SmallVector<Value> slots;
    SmallVector<Type> scalars;
    for (Value result : branch.getResults()) {
      if (isTile(result))
        slots.push_back(tiles.allocate(branch.getLoc(), result.getType()));
      else
        scalars.push_back(result.getType());
    }
    auto lowered = slots.empty() ? branch
                                 : scf::IfOp::create(b, branch.getLoc(), scalars, branch.getCondition(),
                                                     /*addThenBlock=*/false, /*addElseBlock=*/false);
    if (lowered != branch)
      for (auto [to, from] : llvm::zip(lowered->getRegions(), branch->getRegions()))
        to.takeBody(from);
    for (Region &region : lowered->getRegions())
      for (Block &block : region) {
        if (failed(lowerBlock(block)))
          return failure();
        lowerYield(block.getTerminator(), slots);
      }
    if (lowered != branch)
      replaceResults(branch, lowered, slots);
    return success();
  }

  TileBuffers tiles;
  OpBuilder &b;
  SmallVector<Operation *> replaced;
};

struct LowerToLinalg : impl::LowerToLinalgBase<LowerToLinalg> {
  using LowerToLinalgBase::LowerToLinalgBase;
  void runOnOperation() override {
    ReferenceLowering lowering(&getContext());
    for (Block &block : getOperation().getBody())
      for (Value argument : block.getArguments())
        if (isTile(argument)) {
          getOperation().emitOpError("expected arguments that are views and scalars, but got ") << argument.getType();
          return signalPassFailure();
        }
    for (Block &block : getOperation().getBody())
      if (failed(lowering.lowerBlock(block)))
        return signalPassFailure();
    lowering.eraseReplaced();
  }
};

} // namespace

} // namespace kiln::lowering::generic

// Lowers tiles to the code of one thread: control flow, elementwise operations and moves between registers.
//
// In: a kernel whose tiles all have layouts, with all exchanges between threads as `simt` operations. Out: scalars and
// vectors of one dimension. The kernel is rebuilt, operation by operation in program order.

#include "lowering/Passes.h"
#include "lowering/gpu/MoveLayouts.h"
#include "lowering/gpu/ThreadCode.h"

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_DISTRIBUTE
#include "lowering/gpu/Passes.h.inc"

namespace {

/// Emits one thread's operations for those of a block, including nested ones.
class Distributor {
public:
  Distributor(func::FuncOp func, OpBuilder &builder) : code(func, builder) {}

  /// Appends one thread's operations for those of `from` to `to`.
  LogicalResult lowerBlock(Block &from, Block &to);
  /// Maps the arguments of a block to those of another one.
  void mapArguments(Block &from, Block &to) { code.mapping.map(from.getArguments(), to.getArguments()); }

  void finish(Block &kernel) { code.finish(kernel); }

private:
  LogicalResult lower(Operation &op);
  LogicalResult lower(scf::ForOp op);
  LogicalResult lower(scf::WhileOp op);
  LogicalResult lower(scf::IfOp op);
  LogicalResult lower(arith::ConstantOp op);
  /// Clones the operation for the thread's share of its operands.
  void copy(Operation &op);
  void lower(tile::IotaOp op);
  LogicalResult lower(tile::MoveOp op);
  void lower(simt::HalfOp op);
  void lower(simt::JoinOp op);
  void lower(simt::BufferOp op);

  ThreadCode code;
};

} // namespace

// --- Control flow ----------------------------------------------------------------------------------------------------

LogicalResult Distributor::lowerBlock(Block &from, Block &to) {
  code.builder.setInsertionPointToEnd(&to);
  for (Operation &op : from) {
    code.loc = op.getLoc();
    if (failed(lower(op)))
      return failure();
  }
  return success();
}

LogicalResult Distributor::lower(scf::ForOp op) {
  const auto held = llvm::map_to_vector(op.getInitArgs(), [&](Value init) { return code.held(init); });
  auto loop = scf::ForOp::create(code.builder, op.getLoc(), code.held(op.getLowerBound()),
                                 code.held(op.getUpperBound()), code.held(op.getStep()), held);
  if (loop.getBody()->mightHaveTerminator() && !loop.getBody()->empty())
    loop.getBody()->getTerminator()->erase(); // exists if nothing is carried
  mapArguments(*op.getBody(), *loop.getBody());
  if (failed(lowerBlock(*op.getBody(), *loop.getBody())))
    return failure();
  code.builder.setInsertionPointAfter(loop);
  code.mapping.map(op.getResults(), loop.getResults());
  return success();
}

LogicalResult Distributor::lower(scf::WhileOp op) {
  const auto held = llvm::map_to_vector(op.getInits(), [&](Value init) { return code.held(init); });
  const auto types = llvm::map_to_vector(op.getResultTypes(), ThreadCode::heldType);
  auto loop = scf::WhileOp::create(code.builder, op.getLoc(), types, held);
  for (const auto &[from, to] : llvm::zip_equal(op->getRegions(), loop->getRegions())) {
    Block &block = to.emplaceBlock();
    for (BlockArgument argument : from.getArguments())
      block.addArgument(ThreadCode::heldType(argument.getType()), argument.getLoc());
    mapArguments(from.front(), block);
    if (failed(lowerBlock(from.front(), block)))
      return failure();
  }
  code.builder.setInsertionPointAfter(loop);
  code.mapping.map(op.getResults(), loop.getResults());
  return success();
}

LogicalResult Distributor::lower(scf::IfOp op) {
  const auto types = llvm::map_to_vector(op.getResultTypes(), ThreadCode::heldType);
  const bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(code.builder, op.getLoc(), types, code.held(op.getCondition()), hasElse);
  const auto side = [&](Region &from, Region &to) {
    if (!to.front().empty())
      to.front().getTerminator()->erase();
    return lowerBlock(from.front(), to.front());
  };
  if (failed(side(op.getThenRegion(), branch.getThenRegion())) ||
      (hasElse && failed(side(op.getElseRegion(), branch.getElseRegion()))))
    return failure();
  code.builder.setInsertionPointAfter(branch);
  code.mapping.map(op.getResults(), branch.getResults());
  return success();
}

// --- Elementwise -----------------------------------------------------------------------------------------------------

void Distributor::copy(Operation &op) {
  Operation *const made = code.builder.clone(op, code.mapping);
  for (Value result : made->getResults())
    result.setType(ThreadCode::heldType(result.getType()));
}

LogicalResult Distributor::lower(arith::ConstantOp op) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense) {
    copy(*op);
    return success();
  }
  if (!dense.isSplat())
    return op.emitError("expected a constant tile of one value");
  auto type = cast<VectorType>(ThreadCode::heldType(op.getType()));
  code.set(op.getResult(), code.make<arith::ConstantOp>(dense.resizeSplat(type)));
  return success();
}

void Distributor::lower(tile::IotaOp op) {
  const LayoutAttr attribute = simt::layoutOf(op.getResult());
  const TileLayout layout = attribute.getLayout();
  const auto type = cast<VectorType>(ThreadCode::heldType(op.getType()));
  SmallVector<APInt> known;
  for (int64_t stored = 0; stored < layout.numStored(); ++stored)
    known.emplace_back(type.getElementTypeBitWidth(), layout.positionOf(stored)[0]);
  Value positions = code.make<arith::ConstantOp>(DenseElementsAttr::get(type, known));
  if (Value share = code.threadOffset(attribute, 0)) {
    if (type.getElementType().isInteger(64))
      share = code.make<arith::ExtUIOp>(type.getElementType(), share);
    positions = code.add(positions, code.make<vector::BroadcastOp>(type, share));
  }
  code.set(op.getResult(), positions);
}

// --- From register to register ---------------------------------------------------------------------------------------

/// Layouts were chosen so that a thread holds the elements that it needs; the map gives their registers.
LogicalResult Distributor::lower(tile::MoveOp op) {
  const Value source = op.getMoved(), result = op->getResult(0);
  const auto type = ThreadCode::heldType(result.getType());
  if (!simt::layoutOf(source)) {
    const Value scalar = code.held(source);
    code.set(result, isa<VectorType>(type) ? code.make<vector::BroadcastOp>(type, scalar) : scalar);
    return success();
  }
  if (!simt::layoutOf(result)) { // one element, in every thread
    code.set(result, code.make<vector::ExtractOp>(code.held(source), 0));
    return success();
  }
  const TileLayout from = simt::layoutOf(source).getLayout(), to = simt::layoutOf(result).getLayout();
  if (!isRenaming(op, from, to))
    return op->emitOpError("expected layouts in which a thread holds what it needs, but got ")
           << source.getType() << " and " << result.getType();
  const AffineMap map = op.getMoveMap();
  Indices indices; // arbitrary for padding
  for (int64_t stored = 0; stored < to.numStored(); ++stored)
    indices.push_back(from.storedAt(map.compose(to.positionOf(stored))).value_or(0));
  code.set(result, code.pick(code.held(source), indices));
  return success();
}

void Distributor::lower(simt::HalfOp op) {
  const TileLayout from = simt::layoutOf(op.getSource()).getLayout(), to = simt::layoutOf(op.getResult()).getLayout();
  Indices indices;
  for (int64_t stored = 0; stored < to.numStored(); ++stored) {
    SmallVector<int64_t> position = to.positionOf(stored);
    int64_t &along = position[op.getAxis()];
    const int64_t below = along & ((int64_t{1} << op.getBit()) - 1);
    along = 2 * along - below + (op.getValue() << op.getBit());
    indices.push_back(from.storedAt(position).value_or(0));
  }
  code.set(op.getResult(), code.pick(code.held(op.getSource()), indices));
}

void Distributor::lower(simt::JoinOp op) {
  const TileLayout from = simt::layoutOf(op.getZeros()).getLayout(), to = simt::layoutOf(op.getResult()).getLayout();
  Indices indices;
  for (int64_t stored = 0; stored < to.numStored(); ++stored) {
    SmallVector<int64_t> position = to.positionOf(stored);
    int64_t &along = position[op.getAxis()];
    const int64_t value = along >> op.getBit() & 1, below = along & ((int64_t{1} << op.getBit()) - 1);
    along = (along - below - (value << op.getBit())) / 2 + below;
    indices.push_back(from.storedAt(position).value_or(0) + value * from.numStored());
  }
  code.set(op.getResult(), code.make<vector::ShuffleOp>(code.held(op.getZeros()), code.held(op.getOnes()), indices));
}

void Distributor::lower(simt::BufferOp op) {
  code.set(op.getResult(), code.add(code.sharedBase(), code.i32(op.getOffset().value_or(0))));
}

// --- The pass --------------------------------------------------------------------------------------------------------

LogicalResult Distributor::lower(Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<scf::ForOp, scf::WhileOp, scf::IfOp, arith::ConstantOp, tile::MoveOp>(
          [&](auto each) { return lower(each); })
      .Case([&](tile::AccessOp access) { return distribute(code, access); })
      .Case<tile::IotaOp, simt::HalfOp, simt::JoinOp, simt::BufferOp>([&](auto each) { return lower(each), success(); })
      .Case<tile::DotOp, simt::MultiplyOp, simt::MultiplyRowsOp, simt::WaitMultiplyOp, simt::ConvertOp, simt::WriteOp,
            simt::FetchOp, simt::ReadOp, simt::PickOp, simt::ReserveOp, simt::PrintOp, simt::ReduceOp, simt::ScanOp,
            simt::SortOp, simt::LookUpOp, simt::CountOp, simt::CarryOp>(
          [&](auto each) { return distribute(code, each), success(); })
      .Default([&](Operation *other) {
        if (isa<tile::TileDialect>(other->getDialect()) &&
            !isa<tile::DimOp, tile::ProgramIdOp, tile::NumProgramsOp, tile::AssumeOp>(other))
          return LogicalResult(other->emitOpError("expected an operation that threads can do"));
        copy(*other);
        return success();
      });
}

namespace {
struct Distribute : impl::DistributeBase<Distribute> {
  using DistributeBase::DistributeBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    Block *const from = &func.front();
    Block *const to = new Block;
    func.getBody().push_back(to);
    for (BlockArgument argument : from->getArguments())
      to->addArgument(argument.getType(), argument.getLoc());
    OpBuilder builder(func.getContext());
    Distributor distributor(func, builder);
    distributor.mapArguments(*from, *to);
    if (failed(distributor.lowerBlock(*from, *to)))
      return signalPassFailure();
    distributor.finish(*to);
    from->dropAllReferences();
    from->erase();
    func.walk([](Block *block) { splitProducts(*block); });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

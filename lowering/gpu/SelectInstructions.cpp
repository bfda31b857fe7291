// Selects the instructions of a product. Tensor cores compute it if they have instructions for its operands, and if the
// accumulator fills their fragments. Otherwise it is a sum of outer products in registers, with the accuracy of `ieee`.

#include "lowering/Passes.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Fragments.h"
#include "dialect/tile/TypeRules.h"
#include "lowering/analysis/TileUses.h"
#include "lowering/tile/Emit.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_SELECTINSTRUCTIONS
#include "lowering/gpu/Passes.h.inc"

namespace {
/// The extents of a product (…, M, K) · (…, K, N).
struct Extents {
  int64_t M, N, K;
  ArrayRef<int64_t> batch;
};
} // namespace

static Extents extentsOf(tile::DotOp op) {
  const ArrayRef<int64_t> a = tile::shapeOf(op.getA().getType()), acc = tile::shapeOf(op.getType());
  return {a[a.size() - 2], acc.back(), a.back(), acc.drop_back(2)};
}

bool isSplit(tile::DotOp op) {
  const tile::Precision precision = op.getPrecision();
  return getElementTypeOrSelf(op.getA().getType()).isF32() &&
         (precision == tile::Precision::TF32x3 || precision == tile::Precision::BF16x3);
}

unsigned multipliedBits(tile::DotOp op) {
  const unsigned bits = getElementTypeOrSelf(op.getA().getType()).getIntOrFloatBitWidth();
  return isSplit(op) && op.getPrecision() == tile::Precision::BF16x3 ? bits / 2 : bits;
}

std::string whyNoTensorCore(tile::DotOp op) {
  const auto a = cast<RankedTensorType>(op.getA().getType());
  const Type element = a.getElementType();
  if (element.isF32() && op.getPrecision() == tile::Precision::IEEE)
    return "f32 is multiplied exactly; with the precision tf32 it would be rounded for them";
  if (!element.isF32() && !tile::isNarrowFloat(element) && !element.isInteger(8))
    return "they do not multiply this type";
  const auto [M, N, K, batch] = extentsOf(op);
  const unsigned bits = multipliedBits(op);
  const auto mma = simt::mmaShapeFor(bits, K);
  // LowerToPtx emits no m16n8k8 for narrow operands.
  if (!mma || mma->k != 256 / mma->bits)
    return "the sum is shorter than the " + std::to_string(256 / bits) + " products of an instruction";
  const auto warps = static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>()));
  if (!simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/false, batch))
    return "the tile does not fill the 16 x 8 sums of an instruction";
  return "";
}

/// Whether elementwise operations lead from a tile to a reduction of its rows, or to the left operand of a product.
static bool isUsedByRows(Value tile) {
  llvm::SetVector<OpOperand *> reached;
  const auto reach = [&](Value value) {
    for (OpOperand &use : value.getUses())
      reached.insert(&use);
  };
  reach(tile);
  for (size_t next = 0; next < reached.size(); ++next) {
    Operation *const user = reached[next]->getOwner();
    if (auto reduce = dyn_cast<tile::ReduceOp>(user);
        reduce && static_cast<int64_t>(reduce.getAxis()) + 1 == reduce.getSource().getType().getRank())
      return true;
    if (isa<tile::DotOp>(user) && reached[next]->getOperandNumber() == 0)
      return true;
    if (isElementwise(user))
      reach(user->getResult(0));
  }
  return false;
}

/// A product from which elementwise operations lead to this tile.
static tile::DotOp producingDot(Value tile) {
  llvm::SetVector<Value> reached;
  reached.insert(tile);
  for (size_t next = 0; next < reached.size(); ++next) {
    Operation *const op = reached[next].getDefiningOp();
    if (auto dot = dyn_cast_if_present<tile::DotOp>(op))
      return dot;
    if (op && isElementwise(op))
      reached.insert_range(op->getOperands());
  }
  return {};
}

/// The distribution of the accumulator over warps. Rows that are reduced or multiplied again, as attention's scores,
/// stay within a warp, and so do rows of the product with that left operand. Then neither the reduction nor the operand
/// goes through shared memory. `sparesB` as in warpSplit.
static std::optional<simt::WarpSplit> splitOf(tile::DotOp op, unsigned warps, bool sparesB = false) {
  const auto [M, N, K, batch] = extentsOf(op);
  if (isUsedByRows(op) || producingDot(op.getA()))
    if (const auto rows = simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/true, batch))
      return rows;
  return simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/false, batch, sparesB);
}

/// Whether the operand is loaded in the iteration that multiplies it, possibly transposed or reshaped.
static bool isLoadedIn(Value operand, Block *body) {
  while (isa_and_present<tile::TransposeOp, tile::ReshapeOp>(operand.getDefiningOp()))
    operand = operand.getDefiningOp()->getOperand(0);
  auto load = operand.getDefiningOp<tile::LoadOp>();
  return load && load->getBlock() == body;
}

/// Whether a reshape only drops leading dimensions of extent 1.
static bool dropsLeadingOnes(tile::ReshapeOp reshape) {
  const ArrayRef<int64_t> to = tile::shapeOf(reshape.getType()), from = tile::shapeOf(reshape.getSource().getType());
  return to.size() == 2 && from.size() >= 2 && from.take_back(2) == to;
}

std::pair<tile::LoadOp, bool> operandLoad(Value operand) {
  bool isTransposed = false;
  for (;; operand = operand.getDefiningOp()->getOperand(0)) {
    Operation *const op = operand.getDefiningOp();
    if (auto transpose = dyn_cast_or_null<tile::TransposeOp>(op))
      isTransposed ^= transpose.getPermutation().back() + 1 != static_cast<int64_t>(transpose.getPermutation().size());
    else if (auto reshape = dyn_cast_or_null<tile::ReshapeOp>(op); reshape && dropsLeadingOnes(reshape))
      continue;
    else if (!isa_and_present<simt::ConvertOp>(op))
      return {dyn_cast_or_null<tile::LoadOp>(op), isTransposed};
  }
}

/// The preferred number of adjacent rows of A, or columns of B, per lane. If they are contiguous in memory, a lane
/// reads four f32 at once, and ldmatrix two bytes. Operands that are split into several bf16 are read one by one,
/// because those of four instructions would need too many registers.
static unsigned neighbours(tile::DotOp op, simt::MmaOperand which) {
  auto [load, isTransposed] = operandLoad(which == simt::MmaOperand::A ? op.getA() : op.getB());
  if (!load || load->getBlock() != op->getBlock())
    return 1;
  const RankedTensorType type = load.getType();
  const unsigned bits = type.getElementTypeBitWidth();
  const CopyWidth width = copyWidthOf(load);
  const int64_t outer = type.getRank() - ((which == simt::MmaOperand::A) == isTransposed ? 1 : 2);
  if (bits != multipliedBits(op) || width.elements == 0 || width.fastest != outer)
    return 1;
  return bits == 32 ? 4 : bits == 8 ? 2 : 1;
}

/// Whether the accumulator is loop-carried and used only by the product.
static bool isSummedByLoop(tile::DotOp op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  auto acc = dyn_cast<BlockArgument>(op.getAcc());
  if (!loop || !acc || acc.getOwner() != loop.getBody() || !acc.hasOneUse() || !op->hasOneUse())
    return false;
  const OpOperand *const yielded = loop.getTiedLoopYieldedValue(acc);
  return yielded && yielded->get() == op.getResult();
}

/// Whether warpgroups, each with a multiple of 64 rows, compute the product. Both operands are in shared memory, or the
/// right one is and each warp's rows are in registers.
static bool isForGroups(tile::DotOp op, unsigned warps) {
  constexpr int64_t warpsOfGroup = 4, maxColumns = 256, maxAccumulators = 128;
  const auto [M, N, K, batch] = extentsOf(op);
  const Type element = cast<RankedTensorType>(op.getA().getType()).getElementType();
  if (!(element.isBF16() || element.isF16()) || !batch.empty() || warps % warpsOfGroup != 0)
    return false;
  const simt::TileShape acc({M, N});
  if (acc[0].isPadded() || acc[1].isPadded() || N % 8 != 0 || N > maxColumns || K % 16 != 0 ||
      acc[0].core() < 16 * int64_t{warps} || M * N > maxAccumulators * simt::numLanes * int64_t{warps})
    return false;
  Block *const body = op->getBlock();
  if (!isLoadedIn(op.getB(), body))
    return false;
  return (isSummedByLoop(op) && isLoadedIn(op.getA(), body)) || splitOf(op, warps) == simt::WarpSplit{warps, 1};
}

/// Multiplies 8-bit floats as bf16 if no instruction multiplies them natively.
static tile::DotOp widened(tile::DotOp op) {
  const auto factors = op->getAttrOfType<ArrayAttr>(tile::factorsName);
  if (!factors || whyNoTensorCore(op).empty())
    return op;
  OpBuilder builder(op);
  Emit emit(builder, op.getLoc());
  const auto wide = [&](Value bytes, size_t number) {
    const Type factor = cast<TypeAttr>(factors[number]).getValue();
    return emit.cast(realOfByte(emit, bytes, factor), builder.getBF16Type());
  };
  const Value a = wide(op.getA(), 0), b = wide(op.getB(), 1);
  auto made = tile::DotOp::create(builder, op.getLoc(), a, b, op.getAcc(), op.getPrecision());
  op.replaceAllUsesWith(made.getResult());
  op.erase();
  return made;
}

/// Whether a product, if there is one, has a tensor core accumulator in which an instruction's columns are adjacent.
static bool isInOrder(tile::DotOp op) {
  const auto layout = op && op->hasAttr("simt.mma") ? op->getAttrOfType<simt::LayoutAttr>("simt.layout") : nullptr;
  if (!layout)
    return false;
  const simt::TileShape &shape = layout.getLayout().shape();
  return layout.getLayout().bases(simt::Hw::reg).front() == shape.vectorAt(shape.rank() - 1, 1);
}

static void choose(tile::DotOp op, unsigned warps, bool groups) {
  const auto [M, N, K, batch] = extentsOf(op);
  const bool hasInstruction = whyNoTensorCore(op).empty();
  const bool isGrouped = groups && hasInstruction && isForGroups(op, warps);
  if (hasInstruction)
    op->setAttr("simt.mma", UnitAttr::get(op.getContext()));
  if (hasInstruction && multipliedBits(op) == 32 && isInOrder(producingDot(op.getA())))
    op->setAttr("simt.chained", UnitAttr::get(op.getContext()));
  if (isGrouped)
    op->setAttr("simt.wgmma", UnitAttr::get(op.getContext()));
  const auto mma = [&] {
    const simt::MmaStrides strides = {neighbours(op, simt::MmaOperand::A), neighbours(op, simt::MmaOperand::B)};
    const bool permutesBytesOfB = multipliedBits(op) == 8 && strides.n > strides.m; // one permutation for four bytes
    return simt::mmaAcc(M, N, *splitOf(op, warps, permutesBytesOfB), warps, batch, strides);
  };
  const simt::TileLayout layout = isGrouped        ? simt::wgmmaAcc(M, N, warps)
                                  : hasInstruction ? mma()
                                                   : simt::fmaAcc(M, N, warps, batch);
  op->setAttr("simt.layout", simt::LayoutAttr::get(op.getContext(), layout));
}

namespace {
struct SelectInstructions : impl::SelectInstructionsBase<SelectInstructions> {
  using SelectInstructionsBase::SelectInstructionsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func->hasAttr("tile.kernel"))
      func.walk([&](tile::DotOp op) { choose(widened(op), static_cast<unsigned>(warpsOf(func)), groups); });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// Which instructions compute a product: the tensor core's where it has them for the operands and the sums fill its
// fragments, else outer products in registers, exact as the language's `ieee` is.

#include "lowering/gpu/Passes.h"
#include "lowering/gpu/Reasons.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Fragments.h"
#include "dialect/tile/TypeRules.h"
#include "lowering/tile/ByteBits.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_SELECTINSTRUCTIONS
#include "lowering/gpu/Passes.h.inc"

namespace {
/// Those of a product (…, M, K) · (…, K, N).
struct Extents {
  int64_t M, N, K;
  ArrayRef<int64_t> batch;
};
} // namespace

static Extents extentsOf(tile::DotOp op) {
  const ArrayRef<int64_t> a = tile::shapeOf(op.getA().getType()), acc = tile::shapeOf(op.getType());
  return {a[a.size() - 2], acc.back(), a.back(), acc.drop_back(2)};
}

std::string whyNoTensorCore(tile::DotOp op) {
  const auto a = cast<RankedTensorType>(op.getA().getType());
  const Type element = a.getElementType();
  if (element.isF32() && op.getPrecision() == tile::Precision::IEEE)
    return "f32 is multiplied exactly; with the precision tf32 it would be rounded for them";
  if (!element.isF32() && !tile::isNarrowFloat(element) && !element.isInteger(8))
    return "they do not multiply this type";
  const auto [M, N, K, batch] = extentsOf(op);
  const unsigned bits =
      op.getPrecision() == tile::Precision::BF16x3 && element.isF32() ? 16 : a.getElementTypeBitWidth();
  const auto mma = simt::mmaShapeFor(bits, K);
  // The tensor core has no m16n8k8 for narrow operands that SpellPtx spells.
  if (!mma || mma->k != 256 / mma->bits)
    return "the sum is shorter than the " + std::to_string(256 / bits) + " products of an instruction";
  const auto warps = static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>()));
  if (!simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/false, batch))
    return "the tile does not fill the 16 x 8 sums of an instruction";
  return "";
}

static bool isElementwise(Operation *op) { return op && OpTrait::hasElementwiseMappableTraits(op); }

/// Whether elementwise operations lead from a tile to a reduction of its rows, or to the left factor of a product.
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

/// Whether elementwise operations lead from a product to this tile.
static bool comesFromProduct(Value tile) {
  llvm::SetVector<Value> reached;
  reached.insert(tile);
  for (size_t next = 0; next < reached.size(); ++next) {
    Operation *const op = reached[next].getDefiningOp();
    if (isa_and_present<tile::DotOp>(op))
      return true;
    if (isElementwise(op))
      reached.insert_range(op->getOperands());
  }
  return false;
}

/// How warps share the sums. The rows of a tile that are reduced or multiplied again, as attention's scores are, stay
/// within a warp, and so do those of the product that has it for its left factor: neither the reduction nor the factor
/// then goes through memory.
static std::optional<simt::WarpSplit> splitOf(tile::DotOp op, unsigned warps) {
  const auto [M, N, K, batch] = extentsOf(op);
  if (isUsedByRows(op) || comesFromProduct(op.getA()))
    if (const auto rows = simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/true, batch))
      return rows;
  return simt::warpSplit(M, N, K, warps, /*rowsInWarp=*/false, batch);
}

/// Whether the operand is loaded in the round that multiplies it, perhaps transposed or of another shape.
static bool isLoadedIn(Value operand, Block *round) {
  while (isa_and_present<tile::TransposeOp, tile::ReshapeOp>(operand.getDefiningOp()))
    operand = operand.getDefiningOp()->getOperand(0);
  auto load = operand.getDefiningOp<tile::LoadOp>();
  return load && load->getBlock() == round;
}

/// Whether the sums pass through the loop's rounds untouched by all but the product.
static bool isSummedByLoop(tile::DotOp op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  auto sums = dyn_cast<BlockArgument>(op.getAcc());
  if (!loop || !sums || sums.getOwner() != loop.getBody() || !sums.hasOneUse() || !op->hasOneUse())
    return false;
  const OpOperand *const yielded = loop.getTiedLoopYieldedValue(sums);
  return yielded && yielded->get() == op.getResult();
}

/// Whether groups of four warps, each with 64 rows or a multiple of it, multiply operands of which both will lie in
/// shared memory, or the right one, where each warp's rows are its own in registers, too.
static bool isForGroups(tile::DotOp op, unsigned warps) {
  constexpr int64_t warpsOfGroup = 4, mostColumns = 256, mostSums = 128;
  const auto [M, N, K, batch] = extentsOf(op);
  const Type element = cast<RankedTensorType>(op.getA().getType()).getElementType();
  if (!(element.isBF16() || element.isF16()) || !batch.empty() || warps % warpsOfGroup != 0)
    return false;
  const simt::TileShape sums({M, N});
  if (sums[0].isPadded() || sums[1].isPadded() || N % 8 != 0 || N > mostColumns || K % 16 != 0 ||
      sums[0].core() < 16 * int64_t{warps} || M * N > mostSums * simt::numLanes * int64_t{warps})
    return false;
  Block *const round = op->getBlock();
  if (!isLoadedIn(op.getB(), round))
    return false;
  return (isSummedByLoop(op) && isLoadedIn(op.getA(), round)) || splitOf(op, warps) == simt::WarpSplit{warps, 1};
}

/// Multiplies floats of 8 bits as bf16 where no instruction multiplies them as they are.
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

static Value isFinite(Emit &emit, Value x) {
  const Value infinity = emit.real(x.getType(), std::numeric_limits<double>::infinity());
  return emit.compare(arith::CmpFPredicate::OLT, emit.make<math::AbsFOp>(x), infinity);
}

/// f32 rounded to tf32, as cvt.rna does it: 13 bits less, and what is no finite number as it is.
static Value roundedToTf32(Emit &emit, Value x) {
  constexpr int64_t half = 1 << 12, places = 0x1fff;
  const Value bits = emit.bits(x, IntegerType::get(x.getContext(), 32));
  const Value nearest = emit.make<arith::AddIOp>(bits, emit.integer(bits.getType(), half));
  const Value cut = emit.make<arith::AndIOp>(nearest, emit.integer(bits.getType(), ~places));
  return emit.select(isFinite(emit, x), emit.bits(cut, Float32Type::get(x.getContext())), x);
}

/// A product of f32 whose factors are sums of two numbers that tensor cores multiply: the large ones' product, and
/// those of a large and a small one, which are left out where they are no finite numbers: a factor that is infinite, or
/// is rounded to infinity, has no small one. The products in the order of their sums.
static SmallVector<tile::DotOp> split(tile::DotOp op) {
  const tile::Precision precision = op.getPrecision();
  const bool isTf32 = precision == tile::Precision::TF32x3;
  if (!getElementTypeOrSelf(op.getA().getType()).isF32() || !(isTf32 || precision == tile::Precision::BF16x3) ||
      !whyNoTensorCore(op).empty())
    return {op};
  OpBuilder builder(op);
  Emit emit(builder, op.getLoc());
  const auto parts = [&](Value x) {
    if (isTf32) {
      const Value large = roundedToTf32(emit, x);
      return std::pair(large, emit.make<arith::SubFOp>(x, large));
    }
    const Value large = emit.cast(x, builder.getBF16Type());
    const Value rest = emit.make<arith::SubFOp>(x, emit.cast(large, builder.getF32Type()));
    return std::pair(large, emit.cast(rest, builder.getBF16Type()));
  };
  const auto [largeA, smallA] = parts(op.getA());
  const auto [largeB, smallB] = parts(op.getB());
  SmallVector<tile::DotOp> products;
  const auto product = [&](Value a, Value b, Value sum) {
    products.push_back(
        tile::DotOp::create(builder, op.getLoc(), a, b, sum, isTf32 ? tile::Precision::TF32 : tile::Precision::IEEE));
    return products.back().getResult();
  };
  const Value zero = emit.real(op.getType(), 0);
  const Value small = product(largeA, smallB, product(smallA, largeB, zero));
  const Value sum = emit.make<arith::AddFOp>(op.getAcc(), emit.select(isFinite(emit, small), small, zero));
  op.replaceAllUsesWith(product(largeA, largeB, sum));
  op.erase();
  return products;
}

static void choose(tile::DotOp op, unsigned warps, bool groups) {
  const auto [M, N, K, batch] = extentsOf(op);
  const bool hasInstruction = whyNoTensorCore(op).empty();
  const bool isGrouped = groups && hasInstruction && isForGroups(op, warps);
  if (hasInstruction)
    op->setAttr("simt.mma", UnitAttr::get(op.getContext()));
  if (isGrouped)
    op->setAttr("simt.wgmma", UnitAttr::get(op.getContext()));
  const simt::TileLayout layout = isGrouped        ? simt::wgmmaAcc(M, N, warps)
                                  : hasInstruction ? simt::mmaAcc(M, N, *splitOf(op, warps), warps, batch)
                                                   : simt::fmaAcc(M, N, warps, batch);
  op->setAttr("simt.layout", simt::LayoutAttr::get(op.getContext(), layout));
}

namespace {
struct SelectInstructions : impl::SelectInstructionsBase<SelectInstructions> {
  using SelectInstructionsBase::SelectInstructionsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    SmallVector<tile::DotOp> products;
    func.walk([&](tile::DotOp op) { products.push_back(op); });
    for (tile::DotOp op : products)
      for (tile::DotOp part : split(widened(op)))
        choose(part, static_cast<unsigned>(warpsOf(func)), groups);
  }
};
} // namespace

} // namespace kiln::lowering::gpu

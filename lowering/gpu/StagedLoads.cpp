// Finds the loads whose tiles can be copied ahead, and the layout of each tile in its slot.

#include "lowering/gpu/Pipeline.h"

#include "lowering/gpu/Threads.h"

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/simt/layout/SwizzledLayout.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::LayoutAttr;
using simt::TileLayout;

/// The bits of a cache line. Lanes share a line, so that a thread's copies are in few rows. Each row needs an address
/// and a bound; copies in one row differ by displacements.
static constexpr int64_t lineBits = 1024;
/// Alignment of tiles in shared memory: a multiple of the swizzle's period.
static constexpr int64_t slotAlignment = 128;

int64_t slotBytes(simt::SharedLayoutAttr slot) {
  return static_cast<int64_t>(llvm::alignTo(slot.getBytes(), slotAlignment));
}

simt::SharedLayoutAttr dropLeadingExtents(simt::SharedLayoutAttr slot) {
  return simt::SharedLayoutAttr::get(slot.getContext(), slot.getShape().take_back(2), slot.getElement(),
                                     slot.getOffsets());
}

/// The conversion of a tile, possibly transposed or reshaped, to an operand of a product, if `op` is or leads to it.
static simt::ConvertOp operandConversion(Operation *op) {
  while (isa<tile::TransposeOp, tile::ReshapeOp>(op) && op->getResult(0).hasOneUse())
    op = *op->user_begin();
  auto convert = dyn_cast<simt::ConvertOp>(op);
  const auto isProduct = [&](Operation *user) {
    return isa<simt::MultiplyRowsOp>(user) || (isa<tile::DotOp>(user) && user->hasAttr("simt.mma"));
  };
  return convert && llvm::any_of(convert->getUsers(), isProduct) ? convert : simt::ConvertOp();
}

/// Whether `op` casts one tile to another type.
static bool isCast(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::ExtSIOp, arith::TruncIOp>(op);
}

/// Whether the tile becomes an operand of a product, directly or after a cast. A cast tile is read from its slot in the
/// load's layout, so that bytes are not read one by one, and converted afterwards.
bool isConvertedToOperand(Operation *op) {
  while (isCast(op) && op->hasOneUse())
    op = *op->user_begin();
  return static_cast<bool>(operandConversion(op));
}

/// The layout that the moves convert to `layout`, and the intermediate types, last one first.
static std::optional<TileLayout> beforeMoves(ArrayRef<Operation *> moves, TileLayout layout,
                                             SmallVectorImpl<Type> &types) {
  for (Operation *move : llvm::reverse(moves)) {
    types.push_back(simt::withLayout(move->getResult(0).getType(), LayoutAttr::get(move->getContext(), layout)));
    if (auto transpose = dyn_cast<tile::TransposeOp>(move)) {
      SmallVector<unsigned> inverse(layout.rank());
      for (const auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        inverse[from] = static_cast<unsigned>(to);
      layout = layout.transpose(inverse);
    } else if (const auto before = layout.reshape(tile::shapeOf(move->getOperand(0).getType()))) {
      layout = *before;
    } else {
      return std::nullopt;
    }
  }
  return layout;
}

std::optional<OperandUse> operandUse(Operation *user) {
  simt::ConvertOp convert = operandConversion(user);
  if (!convert)
    return std::nullopt;
  SmallVector<Operation *> moves;
  for (Operation *op = user; op != convert; op = *op->user_begin())
    moves.push_back(op);
  SmallVector<Type> types;
  const auto layout = beforeMoves(moves, simt::layoutOf(convert.getType()).getLayout(), types);
  return layout ? std::optional(OperandUse{convert, moves, types, *layout}) : std::nullopt;
}

/// The layout of a tile in its slot with the fewest wavefronts for its readers. On a tie, it is the one that all
/// instructions of the machine support.
static std::optional<simt::SwizzledLayout> swizzledLayoutFor(tile::LoadOp load, ArrayRef<int64_t> core,
                                                             unsigned inner) {
  const RankedTensorType type = load.getType();
  std::optional<simt::SwizzledLayout> best;
  unsigned fewest = 0;
  // Lanes read 4 bytes of four rows, or 2 bytes of nonadjacent rows: 0, 1, 4, 5, … of 128 or 64 bytes each.
  for (const simt::SwizzleBits &swizzle : {simt::tmaSwizzle, {2, 0, 1}, {0, 2, 3}, {1, 2, 0}}) {
    const auto swizzled = simt::swizzledLayout(core, inner, type.getElementTypeBitWidth(), swizzle);
    if (!swizzled)
      return std::nullopt;
    const auto place = simt::SharedLayoutAttr::of(type, swizzled->core);
    unsigned wavefronts = 0;
    for (Operation *user : load->getUsers())
      if (const auto use = operandUse(user))
        wavefronts += simt::bestAccess(use->layout, place.getMap(), place.getBits(), /*hasMatrix=*/true).wavefronts();
    if (!best || wavefronts < fewest) {
      best = swizzled;
      fewest = wavefronts;
    }
  }
  return best;
}

void separateUses(Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    if (!isa<tile::TransposeOp, tile::ReshapeOp>(user))
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(user->getUses()))
      if (!user->hasOneUse()) {
        OpBuilder builder(user);
        use.set(builder.clone(*user)->getResult(0));
      }
  }
  for (Operation *user : op->getUsers())
    if (isa<tile::TransposeOp, tile::ReshapeOp>(user))
      separateUses(user);
}

bool followsFrom(ArrayRef<scf::ForOp> loops, Value value) {
  scf::ForOp outermost = loops.front();
  if (value.getParentRegion()->isProperAncestor(&outermost.getBodyRegion()) ||
      llvm::any_of(loops, [&](scf::ForOp loop) { return value == loop.getInductionVar(); }))
    return true;
  Operation *const op = value.getDefiningOp();
  return op && isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
         llvm::any_of(loops, [&](scf::ForOp loop) { return op->getBlock() == loop.getBody(); }) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return followsFrom(loops, operand); });
}

/// The reason why an operand's tile cannot be copied ahead; empty if it can.
static std::string whyNot(scf::ForOp loop, tile::LoadOp load) {
  const auto type = cast<RankedTensorType>(load.getType());
  const auto isUnit = [](int64_t extent) { return extent == 1; };
  if (type.getRank() < 2 || !llvm::all_of(type.getShape().drop_back(2), isUnit) || type.getElementType().isInteger(1))
    return "a ring holds matrices of numbers";
  if (load.getPadding() != tile::Padding::Zero)
    return "its padding is not 0, which copies put outside the view";
  if (!llvm::all_of(load.getOffsets(), [&](Value offset) { return followsFrom(loop, offset); }))
    return "its place does not follow from the loop's position alone";
  if (touches(load->getParentOfType<func::FuncOp>(), load.getView()))
    return "the kernel writes memory that may overlap";
  const CopyWidth width = copyWidthOf(load);
  const unsigned bits = type.getElementTypeBitWidth(), first = static_cast<unsigned>(type.getRank()) - 2;
  if (width.elements * bits < 32 || width.fastest < first)
    return "its rows are not known to begin at multiples of 4 bytes";
  return "";
}

std::nullopt_t refuse(tile::LoadOp load, const std::string &why) {
  load->setAttr("simt.why", StringAttr::get(load.getContext(), why));
  return std::nullopt;
}

std::optional<Copy> planCopy(scf::ForOp loop, tile::LoadOp load) {
  if (!llvm::any_of(load->getUsers(), isConvertedToOperand))
    return std::nullopt;
  if (const std::string why = whyNot(loop, load); !why.empty())
    return refuse(load, why);
  const auto type = cast<RankedTensorType>(load.getType());
  const CopyWidth width = copyWidthOf(load);
  const unsigned bits = type.getElementTypeBitWidth(), first = static_cast<unsigned>(type.getRank()) - 2;
  const simt::TileShape shape(type.getShape());
  const int64_t core[] = {shape[first].core(), shape[first + 1].core()};
  const auto swizzled = swizzledLayoutFor(load, core, width.fastest - first);
  if (!swizzled)
    return refuse(load, "its number of rows is no multiple of 8");
  SmallVector<unsigned> order = {width.fastest};
  for (unsigned dim = static_cast<unsigned>(type.getRank()); dim-- > 0;)
    if (dim != width.fastest)
      order.push_back(dim);
  SmallVector<int64_t> each(type.getRank(), 1);
  each[width.fastest] = width.elements;
  const auto warps = static_cast<unsigned>(warpsOf(load->getParentOfType<func::FuncOp>()));
  return Copy{load, width, simt::SharedLayoutAttr::of(type, swizzled->core),
              LayoutAttr::get(load.getContext(), simt::blocked(type.getShape(), order, each, warps, lineBits / bits))};
}

} // namespace kiln::lowering::gpu

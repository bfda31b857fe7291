// Copies the operands of products to shared memory some iterations ahead (software pipelining).
//
//     for k:                                        fetch 0 … S−2 into slots 0 … S−2, a group each
//       x = load a[m, k]                            for k:
//       y = convert x         ── becomes ──►          wait for all groups but S−2
//       acc = dot(y, …)                               fetch the tile of S−1 rounds later, a group
//                                                     y = read of the slot
//                                                     acc = dot(y, …)
//                                                   wait for all groups
//
// A tile has a ring of S slots. An iteration's fetch goes to the slot that the previous iteration has read, so one
// barrier per iteration is enough: after the wait and before the fetch, where gpu-insert-barriers puts it. Every
// iteration commits a group, of zeros after the last tile, so all groups except the newest S−2 belong to this or
// earlier iterations.
//
// A product of a warpgroup (wgmma) reads its slots asynchronously:
//
//     for k:
//       wait for all groups but S−3; barrier
//       acc = multiply slots, acc
//       fetch the tile of S−2 rounds later, a group
//       wait for all products but this one
//
// Then the slot of the previous iteration is also in use. With fewer than four slots the product is waited for
// immediately.
//
// A product with rows in registers reads only its right operand's slot; it replaces that operand's read and the dot.
// ScheduleProducts.cpp says when it begins and where it is waited for. With three slots or more it may run on while the
// next iteration begins; then the slot of the previous iteration is also in use.

#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/LoadAhead.h"
#include "lowering/gpu/Passes.h"
#include "lowering/gpu/Reasons.h"
#include "lowering/gpu/ScheduleProducts.h"
#include "lowering/gpu/Threads.h"

#include "dialect/simt/MatrixImage.h"
#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/simt/layout/SharedImage.h"
#include "dialect/tile/AccessRules.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <string>

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_PIPELINELOADS
#include "lowering/gpu/Passes.h.inc"

using simt::LayoutAttr;
using simt::TileLayout;

/// The bits of a cache line. Lanes share a line, so that a thread's copies are in few rows: each row needs an address
/// and a bound, while copies in one row differ by displacements.
static constexpr int64_t lineBits = 1024;
/// Alignment of tiles in shared memory: a multiple of the swizzle's period.
static constexpr int64_t slotAlignment = 128;

namespace {

/// A load whose tile is copied ahead.
struct Staged {
  mutable tile::LoadOp load;
  CopyWidth width;
  simt::ImageAttr image, matrix; // the latter without leading dimensions, which are 1
  LayoutAttr copies;             // the layout of the copies
  Value ring;
  int64_t slotBytes() const { return static_cast<int64_t>(llvm::alignTo(image.getBytes(), slotAlignment)); }
};

/// A product that reads its operands from rings.
struct Product {
  mutable tile::DotOp dot;
  tile::LoadOp left, right;
  bool leftTurned = false, rightTurned = false;
};

/// A product of rows in registers that reads its right operand from a ring.
struct RowsProduct {
  mutable tile::DotOp dot;
  tile::LoadOp right;
  bool isTurned = false, runsOn = false;
};

/// One loop.
class Pipeline {
public:
  Pipeline(scf::ForOp loop, int64_t stages) : loop(loop), stages(stages) {}

  /// Finds the loads that can be copied ahead, and the number of stages that fit `bytes`; without `exactly`, it may be
  /// reduced.
  bool plan(int64_t bytes, bool exactly);
  void build();

private:
  std::string whyNot(tile::LoadOp load) const;
  std::optional<Staged> stage(tile::LoadOp load) const;
  bool isFollowedByIndex(Value value) const;
  void fetch(OpBuilder &builder, const Staged &staged, Value position, Value slot, Value predicate, int64_t ahead);
  void replaceUses(OpBuilder &builder, const Staged &staged, Value slot);
  Value placeOf(OpBuilder &builder, const Staged &staged, Value slot) const;
  const Staged *stagedOf(tile::LoadOp load) const;
  void findProduct();
  void findRowsProducts();
  simt::MultiplyRowsOp multiplyRows(OpBuilder &builder, const RowsProduct &rows, Value slot);
  Operation *multiplyAllRows(OpBuilder &builder, Operation *begin, Value slot);
  simt::WaitMultiplyOp multiply(OpBuilder &builder, Value slot, llvm::function_ref<void()> fetches);
  /// The number of iterations that a tile is fetched ahead.
  int64_t distance() const { return stages - 1 - (productsUnderWay() || rowsRunOn() ? 1 : 0); }
  /// Products of slots that are still pending at the end of an iteration.
  int64_t productsUnderWay() const { return product && stages >= 4 ? 1 : 0; }
  /// Whether products of rows are.
  bool rowsRunOn() const {
    return stages >= 3 && llvm::any_of(rowsProducts, [](const RowsProduct &rows) { return rows.runsOn; });
  }

  mutable scf::ForOp loop;
  int64_t stages;
  int64_t unit = 0;     // unit of slot offsets in bytes: the common size if all slots are equal
  int64_t programs = 1; // on an SM, as many as the kernel asks for or shared memory holds
  SmallVector<Staged> all;
  std::optional<Product> product;
  SmallVector<RowsProduct> rowsProducts;
};

} // namespace

// --- Candidates for copies -------------------------------------------------------------------------------------------

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
static bool isConvertedToOperand(Operation *op) {
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

namespace {
/// An operand of a product that results from a tile by moves and a conversion.
struct OperandUse {
  simt::ConvertOp convert;
  SmallVector<Operation *> moves;
  SmallVector<Type> types; // after each move, last one first
  TileLayout layout;       // of the tile before the moves, which lead to the operand's layout
};
} // namespace

static std::optional<OperandUse> operandUse(Operation *user) {
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

/// The image of a tile in its slot with the fewest wavefronts for its readers; on a tie, the one that all instructions
/// of the machine support.
static std::optional<simt::SharedImage> imageFor(tile::LoadOp load, ArrayRef<int64_t> core, unsigned inner) {
  const RankedTensorType type = load.getType();
  std::optional<simt::SharedImage> best;
  unsigned fewest = 0;
  // Lanes read 4 bytes of four rows, or 2 bytes of nonadjacent rows: 0, 1, 4, 5, … of 128 or 64 bytes each.
  for (const simt::Turn &turn : {simt::usualTurn, {2, 0, 1}, {0, 2, 3}, {1, 2, 0}}) {
    const auto image = simt::sharedImage(core, inner, type.getElementTypeBitWidth(), turn);
    if (!image)
      return std::nullopt;
    const auto place = simt::ImageAttr::of(type, image->core);
    unsigned wavefronts = 0;
    for (Operation *user : load->getUsers())
      if (const auto use = operandUse(user))
        wavefronts += simt::bestAccess(use->layout, place.getMap(), place.getBits(), /*hasMatrix=*/true).wavefronts();
    if (!best || wavefronts < fewest) {
      best = image;
      fewest = wavefronts;
    }
  }
  return best;
}

/// Clones reshapes and transposes of a load for each use, because products may read the tile transposed or not, and
/// each use reads the ring separately.
static void separateUses(Operation *op) {
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

/// Whether a scalar of the loop's body depends only on the induction variable and on loop-invariant values.
bool Pipeline::isFollowedByIndex(Value value) const {
  if (value == loop.getInductionVar() || value.getParentRegion()->isProperAncestor(&loop.getBodyRegion()))
    return true;
  Operation *const op = value.getDefiningOp();
  return op && op->getBlock() == loop.getBody() && isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isFollowedByIndex(operand); });
}

/// The reason why an operand's tile cannot be copied ahead; empty if it can.
std::string Pipeline::whyNot(tile::LoadOp load) const {
  const auto type = cast<RankedTensorType>(load.getType());
  const auto isUnit = [](int64_t extent) { return extent == 1; };
  if (type.getRank() < 2 || !llvm::all_of(type.getShape().drop_back(2), isUnit) || type.getElementType().isInteger(1))
    return "a ring holds matrices of numbers";
  if (load.getPadding() != tile::Padding::Zero)
    return "its padding is not 0, which copies put outside the view";
  if (!llvm::all_of(load.getOffsets(), [&](Value offset) { return isFollowedByIndex(offset); }))
    return "its place does not follow from the loop's position alone";
  if (touches(load->getParentOfType<func::FuncOp>(), load.getView()))
    return "the kernel writes what may be the same memory";
  const CopyWidth width = copyWidthOf(load);
  const unsigned bits = type.getElementTypeBitWidth(), first = static_cast<unsigned>(type.getRank()) - 2;
  if (width.elements * bits < 32 || width.fastest < first)
    return "its rows are not known to begin at multiples of 4 bytes";
  return "";
}

std::optional<Staged> Pipeline::stage(tile::LoadOp load) const {
  if (!llvm::any_of(load->getUsers(), isConvertedToOperand))
    return std::nullopt;
  if (const std::string why = whyNot(load); !why.empty()) {
    load->setAttr("simt.why", StringAttr::get(load.getContext(), why));
    return std::nullopt;
  }
  const auto type = cast<RankedTensorType>(load.getType());
  Staged staged{.load = load, .width = copyWidthOf(load)};
  const unsigned bits = type.getElementTypeBitWidth(), first = static_cast<unsigned>(type.getRank()) - 2;
  const simt::TileShape shape(type.getShape());
  const int64_t core[] = {shape[first].core(), shape[first + 1].core()};
  const auto image = imageFor(load, core, staged.width.fastest - first);
  if (!image)
    return std::nullopt;
  staged.image = simt::ImageAttr::of(type, image->core);
  staged.matrix =
      simt::ImageAttr::of(RankedTensorType::get(type.getShape().take_back(2), type.getElementType()), image->core);
  SmallVector<unsigned> order = {staged.width.fastest};
  for (unsigned dim = static_cast<unsigned>(type.getRank()); dim-- > 0;)
    if (dim != staged.width.fastest)
      order.push_back(dim);
  SmallVector<int64_t> each(type.getRank(), 1);
  each[staged.width.fastest] = staged.width.elements;
  const auto warps = static_cast<unsigned>(warpsOf(load->getParentOfType<func::FuncOp>()));
  staged.copies =
      LayoutAttr::get(load.getContext(), simt::blocked(type.getShape(), order, each, warps, lineBits / bits));
  return staged;
}

bool Pipeline::plan(int64_t bytes, bool exactly) {
  int64_t each = 0;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    separateUses(load);
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (auto staged = stage(load)) {
      each += staged->slotBytes();
      unit = std::gcd(unit, staged->slotBytes());
      all.push_back(*staged);
    }
  if (all.empty())
    return false;
  if (!exactly)
    stages = std::min(stages, bytes / each);
  const std::string why = "two stages of " + std::to_string(each) + " bytes do not fit shared memory";
  for (const Staged &staged : all)
    if (stages < 2 && !exactly)
      staged.load->setAttr("simt.why", StringAttr::get(staged.load.getContext(), why));
  findProduct();
  findRowsProducts();
  if (stages < 2)
    return false;
  programs = std::max(programsOf(loop->getParentOfType<func::FuncOp>()), bytes / (stages * each));
  return true;
}

const Staged *Pipeline::stagedOf(tile::LoadOp load) const {
  const auto *const found = llvm::find_if(all, [&](const Staged &staged) { return staged.load == load; });
  return found == all.end() ? nullptr : found;
}

/// Finds the one product whose accumulator is not used otherwise in the loop, and whose operands the tensor cores can
/// read from their rings.
void Pipeline::findProduct() {
  for (auto dot : loop.getBody()->getOps<tile::DotOp>()) {
    if (!dot->hasAttr("simt.wgmma"))
      continue;
    const auto [left, leftTurned] = operandLoad(dot.getA());
    const auto [right, rightTurned] = operandLoad(dot.getB());
    const Staged *const a = left ? stagedOf(left) : nullptr, *const b = right ? stagedOf(right) : nullptr;
    auto sums = dyn_cast<BlockArgument>(dot.getAcc());
    OpOperand *const yielded = sums && sums.getOwner() == loop.getBody() ? loop.getTiedLoopYieldedValue(sums) : nullptr;
    if (product || !a || !b || a->image != a->matrix || b->image != b->matrix || !yielded ||
        yielded->get() != dot.getResult() || !dot->hasOneUse() || !sums.hasOneUse() ||
        !matrixIn(a->image, leftTurned ? 1 : 0, 64) ||
        !matrixIn(b->image, rightTurned ? 0 : 1, tile::shapeOf(dot.getType())[1]))
      continue;
    product = Product{dot, left, right, leftTurned, rightTurned};
  }
}

/// Finds the other products whose right operand the tensor cores can read from its ring.
void Pipeline::findRowsProducts() {
  for (auto dot : loop.getBody()->getOps<tile::DotOp>()) {
    if (!dot->hasAttr("simt.wgmma") || (product && product->dot == dot))
      continue;
    const auto [right, isTurned] = operandLoad(dot.getB());
    const Staged *const b = right ? stagedOf(right) : nullptr;
    if (b && matrixIn(b->matrix, isTurned ? 0 : 1, tile::shapeOf(dot.getType())[1]))
      rowsProducts.push_back({dot, right, isTurned});
  }
  const auto dots = llvm::map_to_vector(rowsProducts, [](const RowsProduct &rows) { return rows.dot.getOperation(); });
  for (RowsProduct &rows : rowsProducts)
    rows.runsOn = !product && mayRunOn(loop, rows.dot, dots);
}

/// Erases unused moves and conversions, recursively.
static void eraseUnused(Operation *op) {
  SmallVector<Operation *> unused = {op};
  while (!unused.empty()) {
    Operation *const last = unused.pop_back_val();
    const SmallVector<Value> operands(last->getOperands());
    last->erase();
    for (const Value operand : operands)
      if (Operation *const made = operand.getDefiningOp();
          isa_and_present<simt::ConvertOp, tile::TransposeOp, tile::ReshapeOp>(made) && made->use_empty() &&
          !llvm::is_contained(unused, made))
        unused.push_back(made);
  }
}

simt::MultiplyRowsOp Pipeline::multiplyRows(OpBuilder &builder, const RowsProduct &rows, Value slot) {
  tile::DotOp dot = rows.dot;
  builder.setInsertionPoint(dot);
  const Staged &right = *stagedOf(rows.right);
  const Value acc = matchPattern(dot.getAcc(), m_PosZeroFloat()) ? Value() : dot.getAcc();
  auto multiply = simt::MultiplyRowsOp::create(builder, dot.getLoc(), dot.getType(), dot.getA(), right.ring,
                                               placeOf(builder, right, slot), acc, right.matrix, rows.isTurned,
                                               ArrayRef<int64_t>{0, stages});
  dot.replaceAllUsesWith(multiply.getResult());
  eraseUnused(dot);
  return multiply;
}

/// Emits the products of rows, and returns the last operation of those that begin the iteration.
Operation *Pipeline::multiplyAllRows(OpBuilder &builder, Operation *begin, Value slot) {
  SmallVector<Operation *> products, runOn;
  for (const RowsProduct &rows : rowsProducts) {
    products.push_back(multiplyRows(builder, rows, slot));
    if (rows.runsOn && rowsRunOn())
      runOn.push_back(products.back());
  }
  return products.empty() ? begin : scheduleProducts(loop, begin, products, runOn);
}

/// Emits the product on the tiles of a slot, then `fetches`, then the wait for products.
simt::WaitMultiplyOp Pipeline::multiply(OpBuilder &builder, Value slot, llvm::function_ref<void()> fetches) {
  tile::DotOp dot = product->dot;
  builder.setInsertionPoint(dot);
  const Location loc = dot.getLoc();
  const Staged &left = *stagedOf(product->left), &right = *stagedOf(product->right);
  const Value sums = simt::MultiplyOp::create(
      builder, loc, dot.getType(), left.ring, placeOf(builder, left, slot), right.ring, placeOf(builder, right, slot),
      dot.getAcc(), left.image, product->leftTurned, right.image, product->rightTurned, ArrayRef<int64_t>{0, stages});
  fetches();
  auto wait = simt::WaitMultiplyOp::create(builder, loc, sums.getType(), productsUnderWay(), sums);
  dot.replaceAllUsesWith(wait.getResult(0));
  eraseUnused(dot);
  return wait;
}

// --- The loop in stages ----------------------------------------------------------------------------------------------

/// The byte offset of a tile's slot in its ring.
Value Pipeline::placeOf(OpBuilder &builder, const Staged &staged, Value slot) const {
  if (staged.slotBytes() == unit)
    return slot;
  const Location loc = staged.load.getLoc();
  const Value units = arith::ConstantIntOp::create(builder, loc, staged.slotBytes() / unit, 32);
  return arith::MulIOp::create(builder, loc, slot, units);
}

/// Starts the copy of the tile of the iteration at `position` to a slot.
void Pipeline::fetch(OpBuilder &builder, const Staged &staged, Value position, Value slot, Value predicate,
                     int64_t ahead) {
  IRMapping values;
  values.map(loop.getInductionVar(), position);
  const auto cloned = [&](auto &&self, Value value) -> Value {
    if (const Value known = values.lookupOrNull(value))
      return known;
    Operation *const op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody())
      return value;
    for (const Value operand : op->getOperands())
      values.map(operand, self(self, operand));
    builder.clone(*op, values);
    return values.lookup(value);
  };
  SmallVector<Value> offsets;
  for (const Value offset : staged.load.getOffsets())
    offsets.push_back(cloned(cloned, offset));
  const Location loc = staged.load.getLoc();
  auto made = simt::FetchOp::create(
      builder, loc, staged.load.getView(), offsets, staged.ring, placeOf(builder, staged, slot), predicate,
      distance() == stages - 1 ? builder.getDenseI64ArrayAttr({ahead, stages})
                               : builder.getDenseI64ArrayAttr({ahead, stages, distance()}),
      builder.getI64IntegerAttr(staged.width.elements), staged.image, staged.copies,
      staged.width.whole ? builder.getUnitAttr() : UnitAttr());
  tile::copyCache(staged.load, made);
  if (const Attribute inside = staged.load->getAttr("tile.inside"))
    made->setAttr("tile.inside", inside);
}

/// Reads the tile from its slot: in the operand's layout for a product, otherwise in the load's layout.
void Pipeline::replaceUses(OpBuilder &builder, const Staged &staged, Value slot) {
  const auto read = [&](OpBuilder &builder, Location loc, LayoutAttr layout) -> Value {
    const simt::SharedAccess access =
        simt::bestAccess(layout.getLayout(), staged.image.getMap(), staged.image.getBits(), /*hasMatrix=*/true);
    const auto movement = simt::MovementAttr::get(builder.getContext(), static_cast<simt::Movement>(access.op));
    return simt::ReadOp::create(builder, loc, simt::withLayout(staged.load.getType(), layout), staged.ring,
                                placeOf(builder, staged, slot), {}, movement, staged.image,
                                builder.getDenseI64ArrayAttr({0, stages}));
  };
  for (Operation *user : llvm::make_early_inc_range(staged.load->getUsers())) {
    const auto use = operandUse(user);
    if (!use)
      continue;
    simt::ConvertOp convert = use->convert;
    OpBuilder here(convert);
    Value tile = read(here, staged.load.getLoc(), LayoutAttr::get(builder.getContext(), use->layout));
    for (const auto [move, type] : llvm::zip_equal(use->moves, llvm::reverse(use->types))) {
      IRMapping mapping;
      mapping.map(move->getOperand(0), tile);
      tile = here.clone(*move, mapping)->getResult(0);
      tile.setType(type);
    }
    convert.getResult().replaceAllUsesWith(tile);
    convert.erase();
    for (Operation *move : llvm::reverse(use->moves))
      move->erase();
  }
  if (!staged.load->use_empty()) {
    OpBuilder here(staged.load);
    staged.load.getResult().replaceAllUsesWith(read(here, staged.load.getLoc(), simt::layoutOf(staged.load.getType())));
  }
  staged.load->erase();
}

void Pipeline::build() {
  const Location loc = all.front().load.getLoc();
  IRRewriter rewriter(loop);
  const auto constant = [&](int64_t value) -> Value { return arith::ConstantIntOp::create(rewriter, loc, value, 32); };
  for (Staged &staged : all) {
    const auto type = MemRefType::get({stages * staged.slotBytes()}, rewriter.getI8Type(), MemRefLayoutAttrInterface(),
                                      rewriter.getI64IntegerAttr(3));
    staged.ring = simt::BufferOp::create(rewriter, staged.load.getLoc(), type, IntegerAttr());
  }
  /// The value of the induction variable `rounds` iterations after `position`.
  const auto behind = [&](Value position, int64_t rounds) -> Value {
    const Value steps = arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(position.getType(), rounds));
    return arith::AddIOp::create(rewriter, loc, position, arith::MulIOp::create(rewriter, loc, loop.getStep(), steps));
  };
  const auto fetchAll = [&](Value position, Value slot, int64_t ahead) {
    const Value isThere =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, position, loop.getUpperBound());
    for (const Staged &staged : all)
      fetch(rewriter, staged, position, slot, isThere, ahead);
    simt::CommitCopiesOp::create(rewriter, loc);
  };
  for (int64_t ahead = 0; ahead < distance(); ++ahead)
    fetchAll(behind(loop.getLowerBound(), ahead), constant(ahead * unit), ahead);

  // The slot to read, and those read before, of which the earliest is refilled.
  SmallVector<Value> first;
  for (int64_t earlier = 0; earlier <= stages - distance(); ++earlier)
    first.push_back(constant((stages - earlier) % stages * unit));
  auto staged = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &builder, Location at, ArrayRef<BlockArgument> slots) -> SmallVector<Value> {
        const Value one = arith::ConstantIntOp::create(builder, at, unit, 32),
                    last = arith::ConstantIntOp::create(builder, at, (stages - 1) * unit, 32),
                    zero = arith::ConstantIntOp::create(builder, at, 0, 32);
        const Value isLast = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::eq, slots[0], last);
        const Value next = arith::AddIOp::create(builder, at, slots[0], one);
        SmallVector<Value> now = {arith::SelectOp::create(builder, at, isLast, zero, next)};
        now.append(slots.begin(), std::prev(slots.end()));
        return now;
      }));
  loop = staged;
  const auto slots = loop.getRegionIterArgs().take_back(first.size());
  rewriter.setInsertionPointToStart(loop.getBody());
  Operation *begin =
      simt::WaitCopiesOp::create(rewriter, loc, distance() - 1, /*shown=*/product || !rowsProducts.empty());
  const auto fetchNext = [&] { fetchAll(behind(loop.getInductionVar(), distance()), slots.back(), distance()); };
  simt::WaitMultiplyOp multiplied;
  if (product) {
    // Also orders the products' reads of the slot that is refilled.
    simt::BarrierOp::create(rewriter, loc, rewriter.getStringAttr("shared memory written, then multiplied"));
    multiplied = multiply(rewriter, slots.front(), fetchNext);
    multiplyAllRows(rewriter, multiplied, slots.front());
  } else {
    rewriter.setInsertionPointAfter(multiplyAllRows(rewriter, begin, slots.front()));
    fetchNext();
  }
  for (const Staged &each : all)
    replaceUses(rewriter, each, slots.front());
  rewriter.setInsertionPointAfter(loop);
  simt::WaitCopiesOp::create(rewriter, loc, 0);
  if (productsUnderWay() > 0) {
    const Value sums = loop.getResult(multiplied->getUses().begin()->getOperandNumber());
    auto wait = simt::WaitMultiplyOp::create(rewriter, multiplied.getLoc(), sums.getType(), 0, sums);
    rewriter.replaceAllUsesExcept(sums, wait.getResult(0), wait);
  }
  if (product)
    loadAhead(loop, programs);
}

namespace {
struct PipelineLoads : impl::PipelineLoadsBase<PipelineLoads> {
  using PipelineLoadsBase::PipelineLoadsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    const auto asked = func->getAttrOfType<IntegerAttr>("tile.stages");
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      const auto own = loop->getAttrOfType<IntegerAttr>("tile.stages"), wanted = own ? own : asked;
      Pipeline pipeline(loop, wanted ? wanted.getInt() : int64_t(stages));
      if (pipeline.plan(limit, /*exactly=*/static_cast<bool>(wanted)))
        pipeline.build();
    }
    func.walk([](scf::WhileOp loop) {
      for (auto load : loop.getAfterBody()->getOps<tile::LoadOp>())
        if (llvm::any_of(load->getUsers(), isConvertedToOperand))
          load->setAttr("simt.why", StringAttr::get(load.getContext(), "its loop may end before any round"));
    });
  }
};
} // namespace

} // namespace kiln::lowering::gpu

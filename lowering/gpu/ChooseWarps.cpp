// Chooses the number of warps if the config has none: enough warps that a thread's elements fit its registers.
//
// The pass runs before tiles have layouts, so it divides the elements that are alive at once by the threads. Operations
// that LLVM computes element by element, or again for each use, need no registers of their own.

#include "lowering/Passes.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/gpu/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_CHOOSEWARPS
#include "lowering/gpu/Passes.h.inc"

/// The most 32-bit words of tiles that a thread should hold. For a softmax whose row is one tile of f32, ptxas 13.0
/// takes 161 registers on sm_90a with 32 words and spills 224 bytes with 64 (`kilnc --emit=ptx`, `ptxas -v`). A
/// product's accumulators gain from staying in few threads, which read fewer operands: 128×128 of f32 are 128 words for
/// four warps.
static constexpr int64_t fewWords = 48, fewWordsOfProducts = 160;
/// Beyond this, a thread has no registers for addresses and operands.
static constexpr int64_t maxWords = 224;
/// The most warps that are chosen where registers are few. More leave a thread at most 64 registers.
static constexpr int64_t maxChosen = 16;

/// Whether a product reads `tile` from shared memory.
static bool isOperand(Value tile) {
  return isLoad(tile.getDefiningOp()) && llvm::all_of(tile.getUses(), [](OpOperand &use) {
           auto dot = dyn_cast<tile::DotOp>(use.getOwner());
           return dot && use.get() != dot.getAcc();
         });
}

namespace {
/// The 32-bit words of tiles, all threads together.
class Words {
public:
  /// The most words of tiles of `block` and of the blocks inside that are alive at once.
  int64_t most(Block &block);

private:
  int64_t of(Value value);

  DenseMap<Value, bool> computed; // whether a tile is computed anew for each use, as it follows from positions alone
};
} // namespace

int64_t Words::of(Value value) {
  const auto tile = dyn_cast<RankedTensorType>(value.getType());
  Operation *const op = value.getDefiningOp();
  if (!tile)
    return 0;
  bool &isComputed = computed[value];
  if (op && (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::BroadcastOp, tile::SplatOp, tile::IotaOp>(op)))
    isComputed = true;
  else if (op && isElementwise(op))
    isComputed = llvm::all_of(op->getOperands(), [&](Value operand) {
      return !isa<RankedTensorType>(operand.getType()) || computed.lookup(operand);
    });
  if (computed.lookup(value) || (op && isOperand(value)))
    return 0;
  return llvm::divideCeil(tile.getNumElements() * std::max(8u, tile.getElementTypeBitWidth()), 32);
}

int64_t Words::most(Block &block) {
  DenseMap<Value, Operation *> lastUses; // of the block's values: the operation of the block with the last use
  for (Operation &op : block)
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == &block)
          lastUses[operand] = &op;
    });
  DenseMap<Operation *, int64_t> ends; // words of values with their last use there
  const auto begin = [&](Value value) {
    const auto last = lastUses.find(value);
    const int64_t words = last == lastUses.end() ? 0 : of(value);
    if (words)
      ends[last->second] += words;
    return words;
  };
  int64_t alive = 0;
  for (const Value argument : block.getArguments())
    alive += begin(argument);
  int64_t most = alive;
  for (Operation &op : block) {
    int64_t made = 0, taken = 0; // `taken`: words that the body of a loop has as its arguments
    for (const Value result : op.getResults())
      made += begin(result);
    for (const Value operand : llvm::SmallDenseSet<Value>(op.operand_begin(), op.operand_end()))
      taken += lastUses.lookup(operand) == &op ? of(operand) : 0;
    const bool isInPlace = isElementwise(&op) || isa<tile::DotOp>(op) || op.getNumRegions() > 0;
    most = std::max(most, alive + (isInPlace ? std::max<int64_t>(0, made - taken) : made));
    for (Region &region : op.getRegions())
      for (Block &body : region)
        most = std::max(most, alive - taken + this->most(body));
    alive += made - ends.lookup(&op);
  }
  return most;
}

namespace {
struct ChooseWarps : impl::ChooseWarpsBase<ChooseWarps> {
  using ChooseWarpsBase::ChooseWarpsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel") || func->hasAttr("tile.warps"))
      return;
    int64_t most = 0; // elements of a tile
    bool hasProducts = false;
    int64_t rows = INT64_MAX; // the fewest of a product that warpgroups may compute, 16 for each warp
    func.walk([&](Operation *op) {
      for (const Type type : op->getResultTypes())
        if (const auto tile = dyn_cast<RankedTensorType>(type))
          most = std::max(most, tile.getNumElements());
      auto dot = dyn_cast<tile::DotOp>(op);
      if (!dot)
        return;
      hasProducts = true;
      const auto a = cast<RankedTensorType>(dot.getA().getType());
      if (groups && (a.getElementType().isBF16() || a.getElementType().isF16()))
        rows = std::min(rows, a.getDimSize(a.getRank() - 2));
    });
    const int64_t words = Words().most(func.getBody().front());
    // A config that asks for several programs per SM leaves a thread fewer registers, the more warps a program has.
    const bool mayGrow = minCtasPerSm(func) == 1;
    const auto isCrowded = [&](int64_t warps) {
      const bool losesGroups = 16 * 2 * warps > rows;
      return words / (32 * warps) > (losesGroups ? maxWords : hasProducts ? fewWordsOfProducts : fewWords);
    };
    int64_t warps = usualWarps;
    while ((mayGrow && warps < maxChosen && isCrowded(warps)) || (warps < maxWarps && most / (32 * warps) > maxValues))
      warps *= 2;
    func->setAttr("tile.warps", Builder(func.getContext()).getI64IntegerAttr(warps));
  }
};
} // namespace

} // namespace kiln::lowering::gpu

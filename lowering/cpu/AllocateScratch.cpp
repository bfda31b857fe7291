// Places every scratch buffer in one block of memory owned by the thread, so that a kernel needs neither stack nor
// heap.
//
// In: kernels with `memref.alloca` of static shape anywhere in structured control flow. Out: a last argument
// `memref<?xi8>`, views of it, and the attribute `cpu.scratch_bytes`. Buffers with disjoint lifetimes share bytes. A
// buffer without readers is removed together with its writes.
//
//     %a = memref.alloca() {alignment = 64 : i64} : memref<64x64xf32>
//     ─>
//     %offset = arith.constant 128 : index
//     %a = memref.view %scratch[%offset][] : memref<?xi8> to memref<64x64xf32>
//
// Liveness: operations are numbered in program order. A buffer lives from its first to its last use. A loop that
// contains a use, but not the buffer's definition, counts as a whole, because the next iteration may read data of this
// one. A buffer defined in a loop body therefore lives within one iteration. analysis/Lifetimes.h computes offsets from
// that.

#include "lowering/Passes.h"

#include "lowering/Abi.h"
#include "lowering/Diagnostics.h"
#include "lowering/analysis/Lifetimes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_ALLOCATESCRATCH
#include "lowering/cpu/Passes.h.inc"

using namespace mlir;

namespace {

/// The largest scratch memory of a kernel per thread.
constexpr int64_t scratchLimit = int64_t(64) << 20;

/// Buffers of at least this size are followed by a gap. Otherwise buffers whose sizes are multiples of a page would all
/// begin at one offset in a page. Their loads and stores would conflict (4K aliasing).
constexpr int64_t bigBuffer = 4096, bigBufferGap = 128;

struct Buffer {
  memref::AllocaOp op;
  Lifetime life; // bytes include rounding and the gap; times are operation numbers
};

/// The smallest and largest numbers of an operation and its nested operations.
using Numbers = DenseMap<Operation *, std::pair<int64_t, int64_t>>;

} // namespace

static int64_t number(Operation *op, int64_t next, Numbers &numbers) {
  const int64_t first = next++;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      next = number(&inner, next, numbers);
  numbers[op] = {first, next};
  return next + 1;
}

/// Values that may have the address passed by `use`: results and block arguments.
static void aliasesThrough(OpOperand &use, SmallVectorImpl<Value> &aliases) {
  Operation *const op = use.getOwner();
  // In structured control flow, a loop's operand becomes its argument and result. A yielded value becomes the parent's
  // result and, in a loop, the next iteration's argument.
  const auto matching = [&](ValueRange values, unsigned index) {
    if (index < values.size())
      aliases.push_back(values[index]);
  };
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return matching(loop.getBeforeArguments(), use.getOperandNumber());
  if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    if (use.getOperandNumber() > 0) {
      matching(op->getParentOp()->getResults(), use.getOperandNumber() - 1);
      matching(cast<scf::WhileOp>(op->getParentOp()).getAfterArguments(), use.getOperandNumber() - 1);
    }
    return;
  }
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
    if (BlockArgument argument = loop.getTiedLoopRegionIterArg(&use))
      aliases.push_back(argument);
    if (OpResult result = loop.getTiedLoopResult(&use))
      aliases.push_back(result);
    return;
  }
  if (isa<scf::YieldOp>(op)) {
    Operation *const parent = op->getParentOp();
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return matching(loop.getBeforeArguments(), use.getOperandNumber());
    matching(parent->getResults(), use.getOperandNumber());
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      matching(loop.getRegionIterArgs(), use.getOperandNumber());
    return;
  }
  // Views of a buffer are buffers or pointers. Values computed from a pointer cast to an integer may become a pointer
  // again.
  const bool address = !isa<MemRefType>(use.get().getType()) || isa<memref::ExtractAlignedPointerAsIndexOp>(op);
  for (Value result : op->getResults())
    if (isa<MemRefType, LLVM::LLVMPointerType>(result.getType()) || (address && result.getType().isIntOrIndex()))
      aliases.push_back(result);
}

/// The ancestor of `op` (or itself) that is directly in `block`, and the outermost loop in between, if any.
static std::pair<Operation *, Operation *> liftTo(Region *region, Operation *op) {
  Operation *loop = nullptr;
  while (op->getParentRegion() != region) {
    op = op->getParentOp();
    if (isa<LoopLikeOpInterface>(op))
      loop = op;
  }
  return {op, loop};
}

/// From the first to the last use.
static Lifetime lifeOf(memref::AllocaOp buffer, const Numbers &numbers) {
  Lifetime life = {.first = std::numeric_limits<int64_t>::max(), .last = -1};
  SmallVector<Value> aliases = {buffer.getResult()};
  DenseSet<Value> seen;
  while (!aliases.empty()) {
    const Value alias = aliases.pop_back_val();
    if (!seen.insert(alias).second)
      continue;
    for (OpOperand &use : alias.getUses()) {
      Operation *const user = use.getOwner();
      // A use outside the buffer's region refers to it through a result of an enclosing loop or branch.
      Region *region = buffer->getParentRegion();
      while (!region->isAncestor(user->getParentRegion()))
        region = region->getParentRegion();
      for (Operation *end : {user, buffer.getOperation()}) {
        auto [lifted, loop] = liftTo(region, end);
        if (end == buffer.getOperation() && lifted == end)
          continue; // the definition has no content yet
        const auto [first, last] = numbers.lookup(loop ? loop : end);
        life.first = std::min(life.first, first);
        life.last = std::max(life.last, last);
      }
      aliasesThrough(use, aliases);
    }
  }
  return life;
}

/// The size of a buffer in bytes, or none if it does not have the form that this pass can place.
static FailureOr<int64_t> bytesOf(memref::AllocaOp op) {
  const MemRefType type = op.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return op.emitError("expected a scratch buffer of static shape and identity layout, but got ") << type;
  if (op.getAlignment().value_or(1) > uint64_t(abi::scratchAlignment))
    return op.emitError("expected an alignment of at most ")
           << abi::scratchAlignment << " bytes, but got " << *op.getAlignment();
  Type element = type.getElementType();
  int64_t count = type.getNumElements();
  if (auto vector = dyn_cast<VectorType>(element)) {
    count *= vector.getNumElements();
    element = vector.getElementType();
  }
  return count * (element.isIndex() ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
}

static FailureOr<SmallVector<Buffer>> collectBuffers(func::FuncOp func) {
  Numbers numbers;
  number(func, 0, numbers);
  SmallVector<Buffer> buffers;
  const WalkResult walk = func.walk([&](Operation *op) -> WalkResult {
    if (llvm::any_of(op->getRegions(), [](Region &region) { return !region.empty() && !region.hasOneBlock(); }))
      return op->emitOpError("expected structured control flow while scratch buffers are placed");
    auto alloca = dyn_cast<memref::AllocaOp>(op);
    if (!alloca)
      return WalkResult::advance();
    const FailureOr<int64_t> bytes = bytesOf(alloca);
    if (failed(bytes))
      return WalkResult::interrupt();
    Buffer buffer;
    buffer.op = alloca;
    buffer.life = lifeOf(alloca, numbers);
    buffer.life.bytes = llvm::alignTo(*bytes, abi::scratchAlignment) + (*bytes >= bigBuffer ? bigBufferGap : 0);
    buffers.push_back(buffer);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return buffers;
}

/// Erases buffers that are only written, and the writes. Such buffers belong to tiles in scratch memory whose readers
/// share their nest and use the elements in registers.
static void eraseUnread(func::FuncOp func) {
  SmallVector<memref::AllocaOp> unread;
  const auto writes = [](Operation *user) { return isa<vector::StoreOp, memref::StoreOp>(user); };
  func.walk([&](memref::AllocaOp buffer) {
    if (!buffer->use_empty() && llvm::all_of(buffer->getUsers(), writes))
      unread.push_back(buffer);
  });
  for (memref::AllocaOp buffer : unread) {
    for (Operation *user : llvm::make_early_inc_range(buffer->getUsers()))
      user->erase();
    buffer->erase();
  }
}

static std::string mebibytes(int64_t bytes) { return llvm::formatv("{0:f1} MiB", double(bytes) / (1 << 20)).str(); }

namespace {
struct AllocateScratch : impl::AllocateScratchBase<AllocateScratch> {
  using AllocateScratchBase::AllocateScratchBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    eraseUnread(func);
    FailureOr<SmallVector<Buffer>> buffers = collectBuffers(func);
    if (failed(buffers))
      return signalPassFailure();
    std::vector<Lifetime> lives;
    for (const Buffer &buffer : *buffers)
      lives.push_back(buffer.life);
    const Placement placement = place(lives);
    const int64_t total = placement.bytes;
    if (total > scratchLimit) {
      emitUserError(func) << "kernel '" << func.getName() << "' needs " << mebibytes(total)
                          << " of scratch memory for its tiles, but at most " << mebibytes(scratchLimit)
                          << " are possible: choose smaller tiles, or loop over parts of them";
      return signalPassFailure();
    }
    rewrite(func, *buffers, placement);
  }

  static void rewrite(func::FuncOp func, ArrayRef<Buffer> buffers, const Placement &placement) {
    OpBuilder builder(func.getContext());
    const auto bytesType = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    const unsigned index = func.getNumArguments();
    (void)func.insertArgument(index, bytesType, builder.getDictionaryAttr({}), func.getLoc());
    const Value scratch = func.getArgument(index);
    for (const auto &[buffer, place] : llvm::zip_equal(buffers, placement.offsets)) {
      memref::AllocaOp op = buffer.op;
      builder.setInsertionPoint(op);
      const Value offset = arith::ConstantIndexOp::create(builder, op.getLoc(), place);
      op.replaceAllUsesWith(
          memref::ViewOp::create(builder, op.getLoc(), op.getType(), scratch, offset, ValueRange()).getResult());
      op.erase();
    }
    func->setAttr("cpu.scratch_bytes", builder.getI64IntegerAttr(placement.bytes));
  }
};
} // namespace

} // namespace kiln::lowering::cpu

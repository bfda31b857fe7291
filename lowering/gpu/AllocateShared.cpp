// Places every buffer in the program's shared memory.
//
// Operations are numbered in program order. A buffer lives from its first to its last use. A loop that contains a use,
// but not the buffer, counts as a whole, because the next iteration may read data of this one. analysis/Lifetimes.h
// computes offsets from that.

#include "lowering/gpu/Passes.h"

#include "lowering/Diagnostics.h"
#include "lowering/analysis/Lifetimes.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_ALLOCATESHARED
#include "lowering/gpu/Passes.h.inc"

namespace {

/// Alignment of buffers: for the widest access and asynchronous copies, and for products of warpgroups, whose swizzle
/// repeats after eight rows of 128 bytes.
constexpr int64_t usualAlignment = 128, productAlignment = 1024;

/// Numbers of the operations in program order: an operation's own, and that of its last nested one.
class ProgramOrder {
public:
  ProgramOrder(Operation *root, int64_t alignment) : alignment(alignment) { number(root); }

  /// The lifetime of a buffer, from its first to its last use.
  Lifetime lifeOf(simt::BufferOp buffer) const {
    Lifetime life = {
        .bytes = static_cast<int64_t>(llvm::alignTo(cast<MemRefType>(buffer.getType()).getDimSize(0), alignment)),
        .first = INT64_MAX,
        .last = -1};
    for (Operation *user : buffer->getUsers()) {
      Operation *whole = user;
      for (Operation *op = user; op->getBlock() != buffer->getBlock(); op = op->getParentOp())
        if (isa<LoopLikeOpInterface>(op->getParentOp()))
          whole = op->getParentOp();
      const auto [first, last] = numbers.lookup(whole);
      life.first = std::min(life.first, first);
      life.last = std::max(life.last, last);
    }
    return life;
  }

private:
  void number(Operation *op) {
    const int64_t first = next++;
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        number(&inner);
    numbers[op] = {first, next - 1};
  }

  const int64_t alignment;
  DenseMap<Operation *, std::pair<int64_t, int64_t>> numbers;
  int64_t next = 0;
};

/// A buffer's description in the PTX (lowering/Abi.h): offset, bytes, and source line.
std::string partOf(simt::BufferOp buffer, int64_t offset) {
  return llvm::formatv("{0} {1} {2}", offset, cast<MemRefType>(buffer.getType()).getDimSize(0),
                       llvm::sys::path::filename(sourceLine(buffer.getLoc())));
}

/// Whether the kernel sets the number of stages of its loops, or of one of them.
bool asksForStages(func::FuncOp func) {
  const auto asks = [](Operation *op) {
    return op->hasAttr("tile.stages") ? WalkResult::interrupt() : WalkResult::advance();
  };
  return func->walk(asks).wasInterrupted();
}

struct AllocateShared : impl::AllocateSharedBase<AllocateShared> {
  using AllocateSharedBase::AllocateSharedBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("tile.kernel"))
      return;
    SmallVector<simt::BufferOp> buffers;
    func.walk([&](simt::BufferOp buffer) { buffers.push_back(buffer); });
    const bool multiplies =
        func.walk([](Operation *op) {
              return isa<simt::MultiplyOp, simt::MultiplyRowsOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
            })
            .wasInterrupted();
    const ProgramOrder order(func, multiplies ? productAlignment : usualAlignment);
    std::vector<Lifetime> lives;
    for (simt::BufferOp buffer : buffers)
      lives.push_back(order.lifeOf(buffer));
    const Placement placement = place(lives);
    if (placement.bytes > limit) {
      emitUserError(func) << "kernel '" << func.getName() << "' needs " << placement.bytes
                          << " bytes of shared memory for its tiles, but a program may use at most " << int64_t(limit)
                          << ": choose smaller tiles" << (asksForStages(func) ? " or fewer stages" : "")
                          << ", or loop over parts of them";
      return signalPassFailure();
    }
    Builder builder(func.getContext());
    SmallVector<Attribute> parts;
    for (const auto &[buffer, offset] : llvm::zip_equal(buffers, placement.offsets)) {
      buffer.setOffset(offset);
      parts.push_back(builder.getStringAttr(partOf(buffer, offset)));
    }
    func->setAttr("simt.shared_bytes", builder.getI64IntegerAttr(placement.bytes));
    if (!parts.empty())
      func->setAttr("simt.shared_parts", builder.getArrayAttr(parts));
  }
};

} // namespace

} // namespace kiln::lowering::gpu

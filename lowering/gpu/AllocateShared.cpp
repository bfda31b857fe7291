// Places every buffer in the program's shared memory.
//
// Operations are numbered in program order. A buffer lives from its first to its last use. A loop that contains a use,
// but not the buffer, counts as a whole, because the next iteration may read data of this one. analysis/Lifetimes.h
// computes offsets from that.
//
// A ring may hold the first tiles of the next iteration of an outer loop (gpu-expand-pipeline). Then it is live
// throughout the outer loop, but its later slots are empty outside of the inner loop. Buffers for a tile's results are
// placed there if they fit.

#include "lowering/Passes.h"

#include "lowering/Diagnostics.h"
#include "lowering/analysis/Lifetimes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
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

  /// The lifetime of an operation with all nested ones.
  Lifetime lifeOf(Operation *op) const {
    const auto [first, last] = numbers.lookup(op);
    return {.first = first, .last = last};
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
std::string describeBuffer(simt::BufferOp buffer, int64_t offset) {
  return llvm::formatv("{0} {1} {2}", offset, cast<MemRefType>(buffer.getType()).getDimSize(0),
                       llvm::sys::path::filename(sourceLine(buffer.getLoc())));
}

/// A buffer's tile: `f32 64x32`, `3 of f32 64x32` in a ring of three slots; empty without a user that tells.
std::string tileText(simt::BufferOp buffer) {
  for (Operation *user : buffer->getUsers()) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (auto fetch = dyn_cast<simt::FetchOp>(user)) {
      if (fetch.getSlot()[1] > 1)
        stream << fetch.getSlot()[1] << " of ";
      const simt::SharedLayoutAttr layout = fetch.getSharedLayout();
      stream << layout.getElement() << ' '
             << tile::shapeText(RankedTensorType::get(layout.getShape(), layout.getElement()));
    } else if (auto write = dyn_cast<simt::WriteOp>(user)) {
      const auto type = cast<RankedTensorType>(write.getValue().getType());
      stream << type.getElementType() << ' ' << tile::shapeText(type);
    }
    if (!text.empty())
      return text;
  }
  return "";
}

/// The largest buffers at the time when most bytes are live, each with its source line and tile.
std::string largestText(ArrayRef<simt::BufferOp> buffers, const std::vector<Lifetime> &lives) {
  constexpr size_t most = 4;
  SmallVector<size_t> worst;
  int64_t worstBytes = 0;
  for (const Lifetime &now : lives) {
    SmallVector<size_t> live;
    int64_t bytes = 0;
    for (const auto &[i, life] : llvm::enumerate(lives))
      if (life.first <= now.first && now.first <= life.last)
        live.push_back(i), bytes += life.bytes;
    if (bytes > worstBytes)
      worst = live, worstBytes = bytes;
  }
  llvm::stable_sort(worst, [&](size_t a, size_t b) { return lives[a].bytes > lives[b].bytes; });
  if (worst.size() > most)
    worst.resize(most);
  std::string text;
  for (const size_t i : worst) {
    simt::BufferOp buffer = buffers[i];
    const std::string tile = tileText(buffer);
    text += llvm::formatv("{0}{1} at {2}{3}", text.empty() ? "" : ", ", lives[i].bytes,
                          llvm::sys::path::filename(sourceLine(buffer.getLoc())), tile.empty() ? "" : " for " + tile);
  }
  return text.empty() ? "" : " (live together: " + text + ")";
}

/// Whether the kernel sets the number of stages of its loops, or of one of them.
bool asksForStages(func::FuncOp func) {
  const auto asks = [](Operation *op) {
    return op->hasAttr("tile.stages") ? WalkResult::interrupt() : WalkResult::advance();
  };
  return func->walk(asks).wasInterrupted();
}

/// A ring's empty slots.
struct IdleSlots {
  size_t ring;
  int64_t begin, bytes;    // relative to the ring
  scf::ForOp loop, around; // the ring's own loop, and the loop around it
};

/// The buffers that can be placed in the empty slots.
SmallVector<size_t> findGuests(const IdleSlots &idle, ArrayRef<simt::BufferOp> buffers,
                               const std::vector<Lifetime> &lives, const ProgramOrder &order) {
  const Lifetime loop = order.lifeOf(idle.loop), around = order.lifeOf(idle.around);
  SmallVector<size_t> guests;
  for (size_t i = 0; i < lives.size(); ++i)
    if (!simt::BufferOp(buffers[i]).getIdle() && lives[i].first >= around.first && lives[i].last <= around.last &&
        !lives[i].meets(loop))
      guests.push_back(i);
  return guests;
}

/// The largest range of empty slots of a ring, if there is one.
std::optional<IdleSlots> findIdle(ArrayRef<simt::BufferOp> buffers, const std::vector<Lifetime> &lives) {
  std::optional<IdleSlots> best;
  for (const auto &[i, buffer] : llvm::enumerate(buffers)) {
    const std::optional<uint64_t> idle = simt::BufferOp(buffer).getIdle();
    if (!idle)
      continue;
    const auto begin = static_cast<int64_t>(*idle), bytes = lives[i].bytes - begin;
    if (best && best->bytes >= bytes)
      continue;
    auto reader = llvm::find_if(buffer->getUsers(), [](Operation *user) { return !isa<simt::FetchOp>(user); });
    auto loop = reader == buffer->user_end() ? scf::ForOp() : (*reader)->getParentOfType<scf::ForOp>();
    if (auto around = loop ? loop->getParentOfType<scf::ForOp>() : scf::ForOp())
      best = IdleSlots{i, begin, bytes, loop, around};
  }
  return best;
}

/// Offsets of all buffers: those of `guests` in the empty slots, if they fit there together.
Placement placeAll(std::vector<Lifetime> lives, ArrayRef<simt::BufferOp> buffers, const ProgramOrder &order) {
  const std::optional<IdleSlots> idle = findIdle(buffers, lives);
  if (!idle)
    return place(lives);
  const SmallVector<size_t> guests = findGuests(*idle, buffers, lives, order);
  std::vector<Lifetime> ofGuests;
  for (const size_t guest : guests)
    ofGuests.push_back(lives[guest]);
  const Placement inside = place(ofGuests);
  if (inside.bytes > idle->bytes)
    return place(lives);
  for (const size_t guest : guests)
    lives[guest] = {};
  Placement all = place(lives);
  for (const auto [guest, offset] : llvm::zip_equal(guests, inside.offsets))
    all.offsets[guest] = all.offsets[idle->ring] + idle->begin + offset;
  return all;
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
    const Placement placement = placeAll(lives, buffers, order);
    if (placement.bytes > limit) {
      emitUserError(func) << "kernel '" << func.getName() << "' needs " << placement.bytes
                          << " bytes of shared memory for its tiles, but a program may use at most " << int64_t(limit)
                          << ": choose smaller tiles" << (asksForStages(func) ? " or fewer stages" : "")
                          << ", or loop over parts of them" << largestText(buffers, lives);
      return signalPassFailure();
    }
    Builder builder(func.getContext());
    SmallVector<Attribute> parts;
    for (const auto &[buffer, offset] : llvm::zip_equal(buffers, placement.offsets)) {
      buffer.setOffset(offset);
      parts.push_back(builder.getStringAttr(describeBuffer(buffer, offset)));
    }
    func->setAttr("simt.shared_bytes", builder.getI64IntegerAttr(placement.bytes));
    if (!parts.empty())
      func->setAttr("simt.shared_parts", builder.getArrayAttr(parts));
  }
};

} // namespace

} // namespace kiln::lowering::gpu

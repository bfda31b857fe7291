// Collects the accesses of operations, and decides conflicts by their addresses.

#include "lowering/gpu/Hazards.h"

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/Limits.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::Hw;

// --- Offsets ---------------------------------------------------------------------------------------------------------

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) || constant.getSignificantBits() > 32)
    return {};
  return constant.getSExtValue();
}

/// Whether x · factor is always a multiple of `period`, even if it wraps.
static bool isMultiple(Value x, Value factor, int64_t period) {
  const std::optional<int64_t> times = constantOf(factor);
  return times && *times % period == 0 && (llvm::isPowerOf2_64(period) || x.getDefiningOp<tile::ProgramIdOp>());
}

/// A loop's bound before gpu-narrow-loops clamped it; no executed iteration can tell the difference.
static Value wideBound(Value bound) {
  auto cut = bound.getDefiningOp<arith::TruncIOp>();
  auto least = cut ? cut.getIn().getDefiningOp<arith::MinUIOp>() : arith::MinUIOp();
  return least && constantOf(least.getRhs()) == int64_t{1} << abi::smallExtentBits ? least.getLhs() : bound;
}

/// `offset`, modulo `period` if that is not 0.
static Sum sumOf(Value offset, int64_t period, int effort = 8) {
  if (auto wide = offset.getDefiningOp<arith::ExtSIOp>())
    offset = wide.getIn();
  if (const std::optional<int64_t> constant = constantOf(offset))
    return {{}, period ? llvm::mod(*constant, period) : *constant};
  if (period == 1)
    return {};
  if (effort == 0)
    return {offset};
  if (auto add = offset.getDefiningOp<arith::AddIOp>()) {
    const Sum left = sumOf(add.getLhs(), period, effort - 1), right = sumOf(add.getRhs(), period, effort - 1);
    const int64_t number = left.number + right.number;
    if (!left.value || !right.value)
      return {left.value ? left.value : right.value, period ? number % period : number};
  }
  if (auto multiply = offset.getDefiningOp<arith::MulIOp>(); multiply && period)
    if (isMultiple(multiply.getLhs(), multiply.getRhs(), period) ||
        isMultiple(multiply.getRhs(), multiply.getLhs(), period))
      return {};
  if (auto argument = dyn_cast<BlockArgument>(offset); argument && period)
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
      if (const auto step = constantOf(loop.getStep());
          step && *step > 0 && *step % period == 0 && loop.getInductionVar() == offset)
        return sumOf(wideBound(loop.getLowerBound()), period, effort - 1);
  return {offset};
}

// --- Accesses --------------------------------------------------------------------------------------------------------

/// Without a shared-memory layout, extents of 1 are dropped, because their strides do not matter. Matrices have no
/// layout, because their rows are moved by other lanes.
template <class OpTy> static Access sharedAccess(OpTy op, bool writes, Value tile, Value offset) {
  Access access{.op = op,
                .writes = writes,
                .buffer = op.getBuffer().template getDefiningOp<simt::BufferOp>(),
                .offset = offset,
                .sharedLayout = op.getSharedLayoutAttr(),
                .element = getElementTypeOrSelf(tile.getType())};
  if (access.sharedLayout) {
    access.layout = *op.getMovement() == simt::Movement::Vector ? simt::layoutOf(tile) : simt::LayoutAttr();
    return access;
  }
  access.strides = SmallVector<int64_t, 4>(*op.getStrides());
  simt::TileLayout layout = simt::layoutOf(tile).getLayout();
  for (unsigned dim = layout.rank(); dim-- > 0;)
    if (layout.shape()[dim].size == 1 && layout.rank() > 1) {
      layout = layout.slice(dim);
      access.strides.erase(access.strides.begin() + dim);
    }
  access.layout = simt::LayoutAttr::get(op.getContext(), layout);
  return access;
}

/// By any threads; the view is not written.
static Access fetchAccess(simt::FetchOp op) {
  Access access{.op = op, .writes = true, .isCopy = true, .buffer = op.getBuffer().getDefiningOp<simt::BufferOp>()};
  access.slot.assign(op.getSlot().begin(), op.getSlot().end());
  return access;
}

/// The totals of a scan's parts, anywhere in the buffer, if warps exchange any.
template <class OpTy> static std::optional<Access> totalsOf(OpTy op, bool writes) {
  if (!op.getBuffer())
    return {};
  return Access{.op = op, .writes = writes, .buffer = op.getBuffer().template getDefiningOp<simt::BufferOp>()};
}

static Access globalAccess(tile::AccessOp op) {
  Access access{.op = op, .writes = op.writesView()};
  if (op.ordersAll()) {
    access.writes = true;
    return access;
  }
  access.view = op.getView();
  if (op.getIndexRank() > 0) // at any position of the view
    return access;
  access.layout = simt::layoutOf(op.getTile());
  for (const auto [extent, offset] : llvm::zip_equal(op.getTile().getType().getShape(), op.getSubscripts()))
    access.spans.push_back({.extent = extent, .offset = sumOf(offset, 0), .residue = sumOf(offset, extent)});
  return access;
}

/// The whole slot of an operand, which the tensor cores read until a wait.
template <class OpTy> static Access multiplied(OpTy op, Value operand) {
  Access access{.op = op, .isProduct = true, .buffer = operand.getDefiningOp<simt::BufferOp>()};
  access.slot.assign(op.getSlot().begin(), op.getSlot().end());
  return access;
}

static std::optional<Access> accessOf(Operation *op) {
  using Result = std::optional<Access>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](simt::FetchOp fetch) { return fetchAccess(fetch); })
      .Case([&](simt::MultiplyRowsOp multiply) { return multiplied(multiply, multiply.getRight()); })
      .Case([&](simt::WriteOp write) { return sharedAccess(write, true, write.getValue(), {}); })
      .Case([&](simt::ReadOp read) {
        Access access = sharedAccess(read, false, read.getResult(), read.getOffset());
        if (read.getSlot())
          access.slot.assign(read.getSlot()->begin(), read.getSlot()->end());
        return access;
      })
      .Case([&](simt::PickOp pick) { // from any position of the buffer
        return Access{.op = op, .buffer = pick.getBuffer().getDefiningOp<simt::BufferOp>()};
      })
      .Case([&](simt::LookUpOp look) {
        return Access{.op = op, .buffer = look.getBuffer().getDefiningOp<simt::BufferOp>()};
      })
      .Case([&](simt::CountOp count) {
        return Access{.op = op, .writes = true, .buffer = count.getBuffer().getDefiningOp<simt::BufferOp>()};
      })
      .Case([&](simt::ScanOp scan) { return totalsOf(scan, /*writes=*/true); })
      .Case([&](simt::CarryOp carry) { return totalsOf(carry, /*writes=*/false); })
      .Case([](tile::AccessOp access) { return globalAccess(access); })
      .Default(Result());
}

llvm::SmallVector<Access, 2> accessesOf(Operation *op) {
  if (auto multiply = dyn_cast<simt::MultiplyOp>(op))
    return {multiplied(multiply, multiply.getLeft()), multiplied(multiply, multiply.getRight())};
  if (std::optional<Access> access = accessOf(op))
    return {std::move(*access)};
  return {};
}

bool beginsProduct(Operation *op) { return isa<simt::MultiplyOp, simt::MultiplyRowsOp>(op); }

/// Whether `loop`, and not a loop inside of it, reads the slots of a ring.
static bool isReadIn(simt::BufferOp ring, Operation *loop) {
  return llvm::any_of(ring->getUsers(), [&](Operation *user) {
    return !isa<simt::FetchOp>(user) && user->getParentOfType<LoopLikeOpInterface>() == loop;
  });
}

void Access::leaveIteration(const LoopCarried &loop, bool goesOn) {
  Region &body = *loop.body->getParent();
  const auto forget = [&](std::optional<Sum> &sum) {
    if (sum && sum->value && body.isAncestor(sum->value.getParentRegion()))
      sum.reset();
  };
  auto forOp = dyn_cast<scf::ForOp>(loop.op);
  const Value position = forOp ? forOp.getInductionVar() : Value();
  const std::optional<int64_t> step = forOp ? constantOf(forOp.getStep()) : std::nullopt;
  for (Span &span : spans) {
    if (span.earlier)
      continue; // the residue is unknown, or does not depend on values of the loop
    forget(span.residue);
    if (goesOn && span.offset && step && span.offset->value == position && *step >= span.extent)
      span.earlier = position;
    else
      forget(span.offset);
  }
  if (!goesOn)
    for (Span &span : spans)
      if (span.earlier && span.earlier == position)
        span.earlier = {}, span.offset.reset();
  if (offset && body.isAncestor(offset.getParentRegion()))
    layout = {};
  // An access n iterations ahead is n − 1 ahead in the next iteration, unless a loop inside of this one reads the slot.
  if (!goesOn)
    slot.clear();
  else if (!slot.empty() && op->getParentOp() == loop.op && isReadIn(buffer, loop.op))
    slot[0] = (slot[0] + slot[1] - 1) % slot[1];
}

bool Access::isAwaited(int64_t pending) const {
  if (pending == 0 || slot.empty())
    return pending == 0;
  return slot[0] < (slot.size() > 2 ? slot[2] : slot[1] - 1) - pending;
}

bool surelyRuns(const LoopCarried &loop) {
  auto forOp = dyn_cast<scf::ForOp>(loop.op);
  const std::optional<APInt> count = forOp ? forOp.getStaticTripCount() : std::nullopt;
  return count && !count->isZero();
}

bool runsOnceAtMost(const LoopCarried &loop) {
  auto forOp = dyn_cast<scf::ForOp>(loop.op);
  if (!forOp)
    return false;
  const std::optional<int64_t> step = constantOf(forOp.getStep());
  const Sum begin = sumOf(wideBound(forOp.getLowerBound()), 0);
  SmallVector<Value, 2> ends = {wideBound(forOp.getUpperBound())};
  if (auto least = ends.front().getDefiningOp<arith::MinSIOp>())
    ends = {least.getLhs(), least.getRhs()};
  return step && llvm::any_of(ends, [&](Value value) {
           const Sum end = sumOf(value, 0);
           return end.value == begin.value && end.number - begin.number <= *step;
         });
}

// --- Conflicts -------------------------------------------------------------------------------------------------------

/// Whether each element of the tile is in exactly one thread.
static bool isOwned(simt::LayoutAttr layout) {
  const simt::TileLayout own = layout.getLayout();
  return !own.replicated(Hw::lane) && !own.replicated(Hw::warp);
}

/// Whether equal elements of one layout are accessed by the same thread. Of several threads with an element, one
/// writes.
static bool isSameThread(const Access &a, const Access &b) {
  return a.layout && a.layout == b.layout && ((a.writes && b.writes) || isOwned(a.layout));
}

/// The byte range of an access: the slot of a copy, if it is constant, or the whole buffer.
static std::pair<int64_t, int64_t> bytesOf(const Access &access) {
  simt::BufferOp buffer = access.buffer;
  const int64_t begin = buffer.getOffset().value_or(0);
  if (auto fetch = dyn_cast<simt::FetchOp>(access.op))
    if (const std::optional<int64_t> at = constantOf(fetch.getAt()))
      return {begin + *at, begin + *at + fetch.getSharedLayout().getBytes()};
  return {begin, begin + cast<MemRefType>(buffer.getType()).getDimSize(0)};
}

static bool conflictShared(const Access &a, const Access &b) {
  const auto [firstBegin, firstEnd] = bytesOf(a);
  const auto [secondBegin, secondEnd] = bytesOf(b);
  if (firstEnd <= secondBegin || secondEnd <= firstBegin)
    return false;
  if (a.buffer == b.buffer && !a.slot.empty() && !b.slot.empty() && a.slot[0] != b.slot[0])
    return false;
  const bool sameBytes = firstBegin == secondBegin && a.offset == b.offset && a.strides == b.strides &&
                         a.sharedLayout == b.sharedLayout && a.element == b.element;
  return !(sameBytes && isSameThread(a, b));
}

/// Whether the two accesses have disjoint positions along a dimension.
static bool isApart(const Span &before, const Span &after) {
  if (!before.offset || !after.offset || before.offset->value != after.offset->value)
    return false;
  const int64_t distance = after.offset->number - before.offset->number;
  if (before.earlier) // by at least one step of its loop, which is at least `extent`
    return before.earlier == after.offset->value && !after.earlier && distance == 0;
  return !after.earlier && (distance >= before.extent || -distance >= after.extent);
}

static bool conflictGlobal(const Access &a, const Access &b) {
  if (!a.view || !b.view)
    return true;
  if (a.view != b.view)
    return mayOverlap(a.view, b.view);
  if (a.spans.empty() || b.spans.empty())
    return true;
  const auto both = llvm::zip_equal(a.spans, b.spans);
  if (llvm::any_of(both, [](const auto &pair) { return isApart(std::get<0>(pair), std::get<1>(pair)); }))
    return false;
  const bool sameResidues = llvm::all_of(both, [](const auto &pair) {
    const auto &[before, after] = pair;
    return before.residue && before.residue == after.residue;
  });
  return !(sameResidues && isSameThread(a, b));
}

bool conflict(const Access &before, const Access &after) {
  if ((!before.writes && !after.writes) || bool(before.buffer) != bool(after.buffer))
    return false;
  return before.buffer ? conflictShared(before, after) : conflictGlobal(before, after);
}

std::string describe(const Access &before, const Access &after) {
  return std::string(before.buffer ? "shared" : "global") + " memory " + (before.writes ? "written" : "read") +
         ", then " + (after.writes ? "written" : "read");
}

} // namespace kiln::lowering::gpu

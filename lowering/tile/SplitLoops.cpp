// Splits a loop so that iterations that need no mask have their own loop.
//
//     for n = 0 … end:                          for n = 0 … middle:       // column ≤ m − n for every column
//       mask = column ≤ m − n                     s' = s
//       s' = mask ? s : −∞          becomes     for n = middle … end:
//                                                 mask = column ≤ m − n
//                                                 s' = mask ? s : −∞
//
// A mask that is removed compares positions relative to the tile's corner, or sums of them, with one of these:
//
// - a scalar that increases or decreases by one with the induction variable
// - the distance of such a scalar from a loop-invariant tile of limits:
//
//     mask = column ≥ from − n       // `from`: each row's first column; the mask is true from n = max from on
//
// Such a mask is true for all elements in all iterations before some position, or in all from some position on. Its
// arithmetic must be known not to wrap. For a scalar truncated to 32 bits, the usual form, this is checked at run time.
//
// Loads and stores that move with the induction variable are inside their views in the iterations before some position;
// the attribute `tile.inside` records it. Along other dimensions they are inside in all iterations or in none, which is
// checked before the loop.
//
// The iterations in which all masks are true and all accesses are inside become a loop of their own. The result is at
// most three loops, in the original order and with equal results. Limits that hold from a position on are not checked
// again after it.

#include "lowering/Passes.h"
#include "lowering/analysis/Integers.h"
#include "lowering/tile/Emit.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_SPLITLOOPS
#include "lowering/Passes.h.inc"

namespace {
/// The range of an integer tile's elements: [`least`, `most`] plus `scalar`, if there is one.
struct Span {
  int64_t least, most;
  Value scalar;
};

/// A mask that is true in iterations with Σ sign · scalar ≥ `least`. Or an access whose tile is inside its view along
/// dimension `dim` if that sum plus the view's extent is at least `least`.
struct Mask {
  struct Term {
    Value scalar; // or a tile of limits; the strictest of them counts
    int64_t sign;
  };
  Operation *op; // arith.cmpi, tile.load or tile.store
  SmallVector<Term, 2> terms;
  int64_t least;
  int64_t factor;   // of the induction variable in the sum: 1 or −1; 0 for an access that does not move along `dim`
  int64_t dim = -1; // the dimension of an access
};
} // namespace

// --- Masks -----------------------------------------------------------------------------------------------------------

/// The limit of constants in masks; masks with larger ones are not relative to a tile's corner.
static constexpr int64_t maxMagnitude = int64_t{1} << 24;

static bool isSmall(Value value) {
  const ConstantIntRanges range = rangeOf(value);
  return range.smin().getNumSignBits() > 2 && range.smax().getNumSignBits() > 2;
}

namespace {
/// The form of a value's elements, if they consist of positions, constants and a scalar. Each value is visited once.
class Spans {
public:
  std::optional<Span> of(Value value) {
    if (const auto known = spans.find(value); known != spans.end())
      return known->second;
    const std::optional<Span> span = find(value);
    return spans[value] = span;
  }

private:
  std::optional<Span> find(Value value);
  std::optional<Span> ofSum(Value left, Value right, bool subtracted);

  llvm::DenseMap<Value, std::optional<Span>> spans;
};
} // namespace

std::optional<Span> Spans::ofSum(Value left, Value right, bool subtracted) {
  const auto a = of(left), b = of(right);
  if (!a || !b || (a->scalar && b->scalar) || (b->scalar && subtracted))
    return std::nullopt;
  const Value scalar = a->scalar ? a->scalar : b->scalar;
  if (scalar && !isSmall(scalar))
    return std::nullopt;
  const Span sum = {subtracted ? a->least - b->most : a->least + b->least,
                    subtracted ? a->most - b->least : a->most + b->most, scalar};
  return -maxMagnitude < sum.least && sum.most < maxMagnitude ? std::optional(sum) : std::nullopt;
}

std::optional<Span> Spans::find(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    const int64_t number = constant.getSExtValue();
    return -maxMagnitude < number && number < maxMagnitude ? std::optional(Span{number, number, Value()})
                                                           : std::nullopt;
  }
  if (!isa<RankedTensorType>(value.getType()))
    return Span{0, 0, value};
  Operation *const op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto move = dyn_cast<tile::MoveOp>(op))
    return of(move.getMoved());
  if (auto iota = dyn_cast<tile::IotaOp>(op))
    return Span{0, iota.getType().getNumElements() - 1, Value()};
  if (auto add = dyn_cast<arith::AddIOp>(op))
    return ofSum(add.getLhs(), add.getRhs(), /*subtracted=*/false);
  if (auto subtract = dyn_cast<arith::SubIOp>(op))
    return ofSum(subtract.getLhs(), subtract.getRhs(), /*subtracted=*/true);
  if (auto wide = dyn_cast<arith::ExtSIOp>(op))
    if (const auto span = of(wide.getIn()); span && !span->scalar)
      return span;
  return std::nullopt;
}

static std::optional<Span> spanOf(Value value) { return Spans().of(value); }

/// The scalar before its truncation to 32 bits.
static Value uncut(Value scalar) {
  auto cut = scalar.getDefiningOp<arith::TruncIOp>();
  return cut && cut.getType().isInteger(32) ? cut.getIn() : scalar;
}

static bool isCut(const Mask::Term &term) { return uncut(term.scalar) != term.scalar; }

/// The coefficient of the induction variable in a scalar, a sum of it and loop-invariant scalars; none for other
/// scalars.
static std::optional<int64_t> factorOf(scf::ForOp loop, Value scalar) {
  if (scalar == loop.getInductionVar())
    return 1;
  if (!loop.getBodyRegion().isAncestor(scalar.getParentRegion()))
    return 0;
  Operation *const op = scalar.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  const auto left = factorOf(loop, op->getOperand(0)), right = factorOf(loop, op->getOperand(1));
  if (!left || !right)
    return std::nullopt;
  return isa<arith::AddIOp>(op) ? *left + *right : *left - *right;
}

namespace {
/// The difference of loop-invariant elements and `position`, which increases by one with the induction variable.
/// Neither is negative, so the difference does not wrap.
struct Limits {
  Value tile, position;
};
} // namespace

static bool isFixed(scf::ForOp loop, Value value) { return !loop.getBodyRegion().isAncestor(value.getParentRegion()); }

static std::optional<Limits> limitsOf(scf::ForOp loop, Value value) {
  while (auto move = value.getDefiningOp<tile::MoveOp>())
    value = move.getMoved();
  auto difference = value.getDefiningOp<arith::SubIOp>();
  if (!difference || !isa<RankedTensorType>(difference.getType()) || !isFixed(loop, difference.getLhs()))
    return std::nullopt;
  const auto span = spanOf(difference.getRhs());
  if (!span || !span->scalar || span->least != 0 || span->most != 0)
    return std::nullopt;
  const Value position = uncut(span->scalar);
  if (!position.getType().isInteger(64) || factorOf(loop, position) != 1 || !isSmall(position) ||
      !isNonNegative(rangeOf(position)) || !isNonNegative(rangeOf(difference.getLhs())) ||
      (span->scalar == position && !isSmall(difference.getLhs())))
    return std::nullopt;
  return Limits{difference.getLhs(), span->scalar};
}

/// The mask of a comparison of positions with a tile of limits, if it is one.
static std::optional<Mask> maskOfLimits(scf::ForOp loop, Operation *compare, Value low, Value high, bool strict) {
  const auto below = spanOf(low), above = spanOf(high);
  if (const auto limits = limitsOf(loop, high); limits && below && !below->scalar)
    return Mask{.op = compare,
                .terms = {{limits->tile, 1}, {limits->position, -1}},
                .least = below->most + strict,
                .factor = -1};
  if (const auto limits = limitsOf(loop, low); limits && above && !above->scalar)
    return Mask{.op = compare,
                .terms = {{limits->tile, -1}, {limits->position, 1}},
                .least = strict - above->least,
                .factor = 1};
  return std::nullopt;
}

static std::optional<Mask> maskOf(scf::ForOp loop, arith::CmpIOp compare) {
  using Predicate = arith::CmpIPredicate;
  Value low = compare.getLhs(), high = compare.getRhs(); // low ≤ high, or low < high
  const Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    std::swap(low, high);
  else if (predicate != Predicate::sle && predicate != Predicate::slt)
    return std::nullopt;
  const bool strict = predicate == Predicate::slt || predicate == Predicate::sgt;
  if (!isa<RankedTensorType>(compare.getType()))
    return std::nullopt;
  if (const auto mask = maskOfLimits(loop, compare, low, high, strict))
    return mask;
  const auto below = spanOf(low), above = spanOf(high);
  if (!below || !above)
    return std::nullopt;
  Mask mask{.op = compare, .terms = {}, .least = below->most - above->least + strict, .factor = 0};
  for (const auto &[span, sign] : {std::pair(*above, int64_t{1}), std::pair(*below, int64_t{-1})}) {
    if (!span.scalar)
      continue;
    const Value scalar = uncut(span.scalar);
    const auto factor = factorOf(loop, scalar);
    if (!factor || !isSmall(scalar) || !scalar.getType().isInteger(64))
      return std::nullopt;
    mask.terms.push_back({span.scalar, sign});
    mask.factor += sign * *factor;
  }
  if ((mask.factor != 1 && mask.factor != -1) || (llvm::any_of(mask.terms, isCut) && mask.terms.size() > 1))
    return std::nullopt;
  return mask;
}

/// Whether a mask has a tile of limits and is true from some position on. Then it is not checked after the iterations
/// without masks. Other masks that stay true are checked again. The last loop is then only for a ragged end, and with
/// fewer instructions ptxas would hoist more loads than there are registers.
static bool isPassed(const Mask &mask) {
  return mask.factor > 0 && isa<RankedTensorType>(mask.terms.front().scalar.getType());
}

/// The view of a load or store.
static Value viewOf(Operation *op) { return cast<tile::AccessOp>(op).getView(); }

/// Loads and stores whose position along a dimension is nonnegative and moves with the induction variable, or is
/// invariant.
static void addAccesses(scf::ForOp loop, SmallVectorImpl<Mask> &masks) {
  for (Operation &op : *loop.getBody()) {
    if (!isa<tile::LoadOp, tile::StoreOp>(op))
      continue;
    auto access = cast<tile::AccessOp>(op);
    for (const auto [dim, offset] : llvm::enumerate(access.getSubscripts())) {
      const auto factor = factorOf(loop, offset);
      const bool isKnown = matchPattern(offset, m_Constant()); // with a constant extent, it is decided without a check
      if ((factor == 1 || (factor == 0 && !isKnown)) && isNonNegative(rangeOf(offset)) && isSmall(offset))
        masks.push_back({.op = &op,
                         .terms = {{offset, -1}},
                         .least = tile::shapeOf(access.getTile().getType())[dim],
                         .factor = -*factor,
                         .dim = static_cast<int64_t>(dim)});
    }
  }
}

// --- Loops -----------------------------------------------------------------------------------------------------------

namespace {
/// Splits a loop at positions of its induction variable.
class Split {
public:
  Split(scf::ForOp loop, ArrayRef<Mask> masks)
      : loop(loop), masks(masks), builder(loop), emit(builder, loop.getLoc()) {}
  void build();

private:
  Value constant(int64_t value) { return emit.integer(type, value); }
  Value atFirst(Value scalar);
  Value tightestLimit(const Mask::Term &term);
  Value sumAtZero(const Mask &mask);
  Value findThreshold(const Mask &mask);
  Value onGrid(Value position);
  Value withinEnd(Value position);
  Value notNegative(Value position);
  scf::ForOp copy(Value begin, Value end, ValueRange inits);
  void takeMasks(bool isRemainder = false);
  void shortenMasks(bool isRemainder = false);

  mutable scf::ForOp loop;
  const ArrayRef<Mask> masks;
  OpBuilder builder;
  Emit emit;
  const Type type = loop.getInductionVar().getType();
  IRMapping known; // values at position 0, by values in the loop
  IRMapping copied;
};
} // namespace

/// Computes a scalar for position 0, before the loop.
Value Split::atFirst(Value scalar) {
  if (const Value value = known.lookupOrNull(scalar))
    return value;
  Operation *const op = scalar.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return scalar;
  for (const Value operand : op->getOperands())
    known.map(operand, atFirst(operand));
  builder.clone(*op, known);
  return known.lookup(scalar);
}

/// The smallest element of a tile of limits, or the largest if the limits are subtracted.
Value Split::tightestLimit(const Mask::Term &term) {
  const auto kind = term.sign > 0 ? tile::ReduceKind::Min : tile::ReduceKind::Max;
  Value left = term.scalar;
  while (auto type = dyn_cast<RankedTensorType>(left.getType())) {
    const int64_t axis = type.getRank() - 1;
    left = emit.make<tile::ReduceOp>(tile::ReduceOp::resultType(kind, type, axis), kind, left, axis);
  }
  return left.getType() == this->type ? left : emit.make<arith::ExtSIOp>(this->type, left);
}

/// A mask's sum at position 0 of the induction variable, plus the view's extent for an access.
Value Split::sumAtZero(const Mask &mask) {
  Value rest = constant(0);
  for (const Mask::Term &term : mask.terms) {
    const int64_t sign = term.sign;
    const Value value =
        isa<RankedTensorType>(term.scalar.getType()) ? tightestLimit(term) : atFirst(uncut(term.scalar));
    rest = sign > 0 ? emit.make<arith::AddIOp>(rest, value) : emit.make<arith::SubIOp>(rest, value);
  }
  if (mask.dim >= 0) {
    rest = emit.make<arith::AddIOp>(rest, tile::createDim(builder, loop.getLoc(), viewOf(mask.op), mask.dim));
  }
  return rest;
}

/// The position before which, or from which on, the mask is true. It is the loop's begin or end if a truncated scalar
/// does not fit in 32 bits at one end of the loop. Then the mask is checked in all iterations.
Value Split::findThreshold(const Mask &mask) {
  const Value rest = sumAtZero(mask);
  const Value begin = loop.getLowerBound(), end = loop.getUpperBound();
  const bool falls = mask.factor < 0;
  const Value bound = falls ? emit.make<arith::SubIOp>(rest, constant(mask.least - 1))
                            : emit.make<arith::SubIOp>(constant(mask.least), rest);
  if (llvm::none_of(mask.terms, isCut))
    return bound;
  Value largest; // largest value of the sum, or of the position in a difference
  if (mask.terms.size() > 1)
    largest = emit.make<arith::AddIOp>(atFirst(uncut(mask.terms.back().scalar)), end);
  else
    largest = falls ? emit.make<arith::SubIOp>(rest, begin) : emit.make<arith::AddIOp>(rest, end);
  const Value fits = emit.compare(arith::CmpIPredicate::sle, largest, constant(INT32_MAX));
  return emit.select(fits, bound, falls ? begin : end);
}

/// The first position of the loop that is at least `position`, or the first after its end.
Value Split::onGrid(Value position) {
  const Value begin = loop.getLowerBound(), step = loop.getStep();
  const Value inside = emit.make<arith::MaxSIOp>(begin, emit.make<arith::MinSIOp>(position, loop.getUpperBound()));
  const Value distance =
      emit.make<arith::AddIOp>(emit.make<arith::SubIOp>(inside, begin), emit.make<arith::SubIOp>(step, constant(1)));
  const Value iterations = emit.make<arith::DivUIOp>(distance, step);
  return emit.make<arith::AddIOp>(begin, emit.make<arith::MulIOp>(iterations, step));
}

/// The minimum of the position and the loop's end, so that its range is known. No iteration is between the two.
Value Split::withinEnd(Value position) { return emit.make<arith::MinSIOp>(position, loop.getUpperBound()); }

/// The position, clamped to at least 0 if the loop's begin is known not to be negative, so that its range is known.
Value Split::notNegative(Value position) {
  return isNonNegative(rangeOf(loop.getLowerBound())) ? emit.make<arith::MaxSIOp>(position, constant(0)) : position;
}

scf::ForOp Split::copy(Value begin, Value end, ValueRange inits) {
  copied.clear();
  auto result = cast<scf::ForOp>(builder.clone(*loop, copied));
  result.setLowerBound(begin);
  result.setUpperBound(end);
  result.getInitArgsMutable().assign(inits);
  return result;
}

/// Replaces a mask by `true`, and folds the selects, conjunctions and moves that use it.
static void replaceByTrue(Value mask, SmallVectorImpl<Operation *> &dead) {
  OpBuilder builder(mask.getContext());
  builder.setInsertionPointAfterValue(mask);
  const Value yes = Emit(builder, mask.getLoc()).integer(mask.getType(), 1);
  mask.replaceAllUsesWith(yes);
  dead.push_back(mask.getDefiningOp());
  for (Operation *user : llvm::make_early_inc_range(yes.getUsers())) {
    if (auto select = dyn_cast<arith::SelectOp>(user); select && select.getCondition() == yes) {
      select.getResult().replaceAllUsesWith(select.getTrueValue());
      dead.push_back(select);
    } else if (auto both = dyn_cast<arith::AndIOp>(user)) {
      both.getResult().replaceAllUsesWith(both.getLhs() == yes ? both.getRhs() : both.getLhs());
      dead.push_back(both);
    } else if (isa<tile::MoveOp>(user)) {
      replaceByTrue(user->getResult(0), dead);
    }
  }
}

/// Erases unused operations, recursively.
static void eraseDead(SmallVector<Operation *> &dead) {
  llvm::SmallPtrSet<Operation *, 16> erased;
  while (!dead.empty()) {
    Operation *const op = dead.pop_back_val();
    if (erased.contains(op) || !isOpTriviallyDead(op))
      continue;
    for (const Value operand : op->getOperands())
      if (Operation *const before = operand.getDefiningOp())
        dead.push_back(before);
    erased.insert(op);
    op->erase();
  }
}

/// Replaces masks of the last copied loop by `true`. With `isRemainder`, for the loop after the iterations without
/// masks, it replaces those for which isPassed() is true; otherwise all.
void Split::takeMasks(bool isRemainder) {
  SmallVector<Operation *> dead;
  llvm::MapVector<Operation *, SmallVector<int64_t>> inside;
  for (const Mask &mask : masks)
    if (isRemainder && !isPassed(mask))
      continue;
    else if (mask.dim < 0)
      replaceByTrue(copied.lookup(mask.op->getResult(0)), dead);
    else
      inside[copied.lookup(mask.op)].push_back(mask.dim);
  for (const auto &[access, dims] : inside)
    access->setAttr("tile.inside", builder.getDenseI64ArrayAttr(dims));
  eraseDead(dead);
}

/// Rewrites a mask of differences,
///
///     a − b ≤ limit   as   a ≤ b + limit′
///
/// where b is broadcast. The right side then has fewer elements, and there is no loop-invariant difference per element
/// in registers. limit′ is the limit clamped to the range of differences, so that the sum does not wrap.
static void shortenMask(arith::CmpIOp compare) {
  for (const unsigned side : {0u, 1u}) {
    auto difference = compare->getOperand(side).getDefiningOp<arith::SubIOp>();
    auto repeated = difference ? difference.getRhs().getDefiningOp<tile::BroadcastOp>() : tile::BroadcastOp();
    const auto all = repeated ? spanOf(difference) : std::nullopt, other = spanOf(compare->getOperand(1 - side));
    if (!all || !other || all->scalar || !other->scalar || other->least != 0 || other->most != 0)
      continue;
    OpBuilder builder(compare);
    Emit emit(builder, compare.getLoc());
    const Type type = other->scalar.getType();
    if (type != getElementTypeOrSelf(difference.getType()))
      continue;
    const Value atLeast = emit.make<arith::MaxSIOp>(other->scalar, emit.integer(type, all->least - 1));
    const Value limit = emit.make<arith::MinSIOp>(atLeast, emit.integer(type, all->most + 1));
    const Value source = repeated.getSource();
    const Value sum = emit.make<arith::AddIOp>(source, emit.make<tile::SplatOp>(source.getType(), limit));
    const Value right = emit.make<tile::BroadcastOp>(repeated.getType(), sum);
    SmallVector<Operation *> dead = {difference, compare->getOperand(1 - side).getDefiningOp()};
    compare->setOperand(side, difference.getLhs());
    compare->setOperand(1 - side, right);
    return eraseDead(dead);
  }
}

/// Shortens the masks that the last copied loop still has.
void Split::shortenMasks(bool isRemainder) {
  for (const Mask &mask : masks)
    if (mask.dim < 0 && !(isRemainder && isPassed(mask)))
      shortenMask(copied.lookup(mask.op->getResult(0)).getDefiningOp<arith::CmpIOp>());
}

void Split::build() {
  known.map(loop.getInductionVar(), constant(0));
  Value first, last; // first position of the iterations without masks, and the position after their last
  Value isInside;    // whether there are such iterations
  for (const Mask &mask : masks) {
    if (mask.factor == 0) {
      const Value fits = emit.compare(arith::CmpIPredicate::sge, sumAtZero(mask), constant(mask.least));
      isInside = isInside ? emit.make<arith::AndIOp>(isInside, fits) : fits;
      continue;
    }
    const Value bound = findThreshold(mask);
    if (mask.factor > 0)
      first = first ? emit.make<arith::MaxSIOp>(first, bound) : bound;
    else
      last = last ? emit.make<arith::MinSIOp>(last, bound) : bound;
  }
  first = first ? onGrid(first) : Value();
  last = last ? onGrid(last) : Value();
  if (isInside)
    last = emit.select(isInside, last ? last : loop.getUpperBound(), first ? first : loop.getLowerBound());
  if (first && last)
    last = emit.make<arith::MaxSIOp>(first, last);
  first = first ? notNegative(first) : Value();
  last = last ? notNegative(last) : Value();

  ValueRange results = loop.getInitArgs();
  if (first) {
    results = copy(loop.getLowerBound(), withinEnd(first), results).getResults();
    shortenMasks();
  }
  scf::ForOp interior =
      copy(first ? first : loop.getLowerBound(), last ? withinEnd(last) : loop.getUpperBound(), results);
  takeMasks();
  results = interior.getResults();
  if (last) {
    results = copy(last, loop.getUpperBound(), results).getResults();
    takeMasks(/*isRemainder=*/true);
    shortenMasks(/*isRemainder=*/true);
  }
  loop.replaceAllUsesWith(results);
  loop.erase();
}

static bool hasLoop(scf::ForOp loop) {
  return loop.getBody()->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

namespace {
struct SplitLoops : impl::SplitLoopsBase<SplitLoops> {
  using SplitLoopsBase::SplitLoopsBase;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      const bool isCounted = loop.getInductionVar().getType().isInteger(64) && !loop.getUnsignedCmp();
      const ConstantIntRanges step = rangeOf(loop.getStep());
      if (!isCounted || hasLoop(loop) || !step.smin().isStrictlyPositive() || !isSmall(loop.getStep()) ||
          !isSmall(loop.getLowerBound()) || !isSmall(loop.getUpperBound()))
        continue;
      SmallVector<Mask> masks;
      for (auto compare : loop.getBody()->getOps<arith::CmpIOp>())
        if (const auto mask = maskOf(loop, compare))
          masks.push_back(*mask);
      if (masks.empty())
        continue;
      addAccesses(loop, masks);
      Split(loop, masks).build();
    }
  }
};
} // namespace

} // namespace kiln::lowering

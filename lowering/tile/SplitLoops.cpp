// Rounds of a loop that need no mask get a loop of their own.
//
//     for n = 0 … end:                          for n = 0 … middle:       // column ≤ m − n for each column of a round
//       mask = column ≤ m − n                     s' = s
//       s' = mask ? s : −∞          becomes     for n = middle … end:
//                                                 mask = column ≤ m − n
//                                                 s' = mask ? s : −∞
//
// A mask is a comparison of positions counted from the tile's corner, or numbers made of them, with a scalar that grows
// or falls by one with the loop's position, or with what that lies away from a tile of limits, which are the same in
// all rounds:
//
//     mask = column ≥ from − n       // the first column that each row sees: from n = max from on all do
//
// So it is true throughout in the rounds before some position, or in those from one on. Loads and stores that move with
// the position lie inside their views in rounds of the first kind, and say so in `tile.inside`; along dimensions in
// which they do not move they do so in all rounds or in none, which is asked before the loop. Of several masks and
// loads the rounds that need nothing are split off: at most three loops, in the order of the one, which compute the
// same; limits that are kept from a position on are not asked for again behind it. What a mask computes without
// wrapping it must be known to compute without wrapping; of a scalar cut to 32 bits, which masks are as a rule, that is
// asked when the kernel runs.

#include "lowering/Passes.h"
#include "lowering/analysis/Ranges.h"
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
/// The elements of a tile of integers: from `least` to `most`, and `scalar` more, if there is one.
struct Span {
  int64_t least, most;
  Value scalar;
};

/// A mask, true throughout in the rounds with Σ sign · scalar ≥ `least`; or an access whose tile lies inside its view
/// along a dimension in those in which that, and the view's extent, is at least so much.
struct Mask {
  struct Term {
    Value scalar; // or a tile of limits, of which the one counts that is hardest to meet
    int64_t sign;
  };
  Operation *op; // arith.cmpi, tile.load or tile.store
  SmallVector<Term, 2> terms;
  int64_t least;
  int64_t factor;   // of the loop's position in the sum: 1 or −1; 0 of an access that does not move along the dimension
  int64_t dim = -1; // of the access's
};
} // namespace

// --- Masks -----------------------------------------------------------------------------------------------------------

/// Numbers beside positions: what fits no such width is no mask of a tile's corner.
static constexpr int64_t mostBeside = int64_t{1} << 24;

static bool isSmall(Value value) {
  const ConstantIntRanges range = rangeOf(value);
  return range.smin().getNumSignBits() > 2 && range.smax().getNumSignBits() > 2;
}

namespace {
/// What the elements of a value, a tile or a scalar, are made of, where that is positions, constants and a scalar. Each
/// value is looked at once.
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
  return -mostBeside < sum.least && sum.most < mostBeside ? std::optional(sum) : std::nullopt;
}

std::optional<Span> Spans::find(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    const int64_t number = constant.getSExtValue();
    return -mostBeside < number && number < mostBeside ? std::optional(Span{number, number, Value()}) : std::nullopt;
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

/// The scalar before it was cut to 32 bits.
static Value uncut(Value scalar) {
  auto cut = scalar.getDefiningOp<arith::TruncIOp>();
  return cut && cut.getType().isInteger(32) ? cut.getIn() : scalar;
}

static bool isCut(const Mask::Term &term) { return uncut(term.scalar) != term.scalar; }

/// How often the loop's position goes into a scalar, which is the rest and that; nothing where it is no such sum.
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
/// What lies `position`, which grows by one with the loop's, before tiles' elements that are the same in all rounds.
/// None of either is negative, so that no difference wraps.
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

/// A comparison of positions with limits.
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
  Value low = compare.getLhs(), high = compare.getRhs(); // low ≤ high, or below it
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

/// Whether a mask is one of limits that hold from a position on: behind the rounds without masks it is not asked again.
/// Other masks of the kind are: there the loop behind is for a ragged end alone, and with fewer instructions ptxas
/// moves more loads to its beginning than it has registers for.
static bool isPassed(const Mask &mask) {
  return mask.factor > 0 && isa<RankedTensorType>(mask.terms.front().scalar.getType());
}

/// The view of a load or store.
static Value viewOf(Operation *op) { return cast<tile::AccessOp>(op).getView(); }

/// Loads and stores whose begin along a dimension is never below 0 and moves with the loop's position, or not at all.
static void addAccesses(scf::ForOp loop, SmallVectorImpl<Mask> &masks) {
  for (Operation &op : *loop.getBody()) {
    if (!isa<tile::LoadOp, tile::StoreOp>(op))
      continue;
    auto access = cast<tile::AccessOp>(op);
    for (const auto [dim, offset] : llvm::enumerate(access.getSubscripts())) {
      const auto factor = factorOf(loop, offset);
      const bool isKnown = matchPattern(offset, m_Constant()); // with extents that are known, too, or none are
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
/// A loop that is taken apart at positions that it comes by.
class Split {
public:
  Split(scf::ForOp loop, ArrayRef<Mask> masks)
      : loop(loop), masks(masks), builder(loop), emit(builder, loop.getLoc()) {}
  void build();

private:
  Value constant(int64_t value) { return emit.integer(type, value); }
  Value atFirst(Value scalar);
  Value hardestOf(const Mask::Term &term);
  Value restOf(const Mask &mask);
  Value boundOf(const Mask &mask);
  Value onGrid(Value position);
  Value withinEnd(Value position);
  Value notNegative(Value position);
  scf::ForOp copy(Value begin, Value end, ValueRange inits);
  void takeMasks(bool behind = false);
  void shortenMasks(bool behind = false);

  mutable scf::ForOp loop;
  const ArrayRef<Mask> masks;
  OpBuilder builder;
  Emit emit;
  const Type type = loop.getInductionVar().getType();
  IRMapping known; // of values in the loop, what they are at position 0
  IRMapping copied;
};
} // namespace

/// What a scalar would be at position 0, in front of the loop.
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

/// Of a tile of limits the least, or of those that are subtracted the largest.
Value Split::hardestOf(const Mask::Term &term) {
  const auto kind = term.sign > 0 ? tile::ReduceKind::Min : tile::ReduceKind::Max;
  Value left = term.scalar;
  while (auto type = dyn_cast<RankedTensorType>(left.getType())) {
    const int64_t axis = type.getRank() - 1;
    left = emit.make<tile::ReduceOp>(tile::ReduceOp::resultType(kind, type, axis), kind, left, axis);
  }
  return left.getType() == this->type ? left : emit.make<arith::ExtSIOp>(this->type, left);
}

/// A mask's sum, without the position.
Value Split::restOf(const Mask &mask) {
  Value rest = constant(0);
  for (const Mask::Term &term : mask.terms) {
    const int64_t sign = term.sign;
    const Value value = isa<RankedTensorType>(term.scalar.getType()) ? hardestOf(term) : atFirst(uncut(term.scalar));
    rest = sign > 0 ? emit.make<arith::AddIOp>(rest, value) : emit.make<arith::SubIOp>(rest, value);
  }
  if (mask.dim >= 0) {
    const Value view = viewOf(mask.op);
    const int64_t extent = cast<MemRefType>(view.getType()).getDimSize(mask.dim);
    const Value known = ShapedType::isDynamic(extent) ? emit.make<tile::DimOp>(type, view, mask.dim) : constant(extent);
    rest = emit.make<arith::AddIOp>(rest, known);
  }
  return rest;
}

/// The position before which, or from which on, the mask is true throughout. Where a scalar does not fit the 32 bits
/// that it is cut to at one end of the loop, it is none of the loop's.
Value Split::boundOf(const Mask &mask) {
  const Value rest = restOf(mask);
  const Value begin = loop.getLowerBound(), end = loop.getUpperBound();
  const bool falls = mask.factor < 0;
  const Value bound = falls ? emit.make<arith::SubIOp>(rest, constant(mask.least - 1))
                            : emit.make<arith::SubIOp>(constant(mask.least), rest);
  if (llvm::none_of(mask.terms, isCut))
    return bound;
  Value largest; // of the sum, or of a position that limits lie away from
  if (mask.terms.size() > 1)
    largest = emit.make<arith::AddIOp>(atFirst(uncut(mask.terms.back().scalar)), end);
  else
    largest = falls ? emit.make<arith::SubIOp>(rest, begin) : emit.make<arith::AddIOp>(rest, end);
  const Value fits = emit.compare(arith::CmpIPredicate::sle, largest, constant(INT32_MAX));
  return emit.select(fits, bound, falls ? begin : end);
}

/// The first position of the loop's that is no less than `position`, or the first after its end.
Value Split::onGrid(Value position) {
  const Value begin = loop.getLowerBound(), step = loop.getStep();
  const Value inside = emit.make<arith::MaxSIOp>(begin, emit.make<arith::MinSIOp>(position, loop.getUpperBound()));
  const Value distance =
      emit.make<arith::AddIOp>(emit.make<arith::SubIOp>(inside, begin), emit.make<arith::SubIOp>(step, constant(1)));
  const Value rounds = emit.make<arith::DivUIOp>(distance, step);
  return emit.make<arith::AddIOp>(begin, emit.make<arith::MulIOp>(rounds, step));
}

/// The position, or the loop's end if that comes first: no round lies between them. It is known to be as small as that.
Value Split::withinEnd(Value position) { return emit.make<arith::MinSIOp>(position, loop.getUpperBound()); }

/// The position, which is known to be no negative number as far as the loop's beginning is.
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

/// Puts `true` for a mask and follows it to where it chooses.
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

/// Erases what nobody needs any more, and what that alone needed.
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

/// Of the loop that was copied last: all, or, `behind` the rounds without masks, those that are true from them on.
void Split::takeMasks(bool behind) {
  SmallVector<Operation *> dead;
  llvm::MapVector<Operation *, SmallVector<int64_t>> inside;
  for (const Mask &mask : masks)
    if (behind && !isPassed(mask))
      continue;
    else if (mask.dim < 0)
      replaceByTrue(copied.lookup(mask.op->getResult(0)), dead);
    else
      inside[copied.lookup(mask.op)].push_back(mask.dim);
  for (const auto &[access, dims] : inside)
    access->setAttr("tile.inside", builder.getDenseI64ArrayAttr(dims));
  eraseDead(dead);
}

/// Writes a mask of differences,
///
///     a − b ≤ limit   as   a ≤ b + limit′
///
/// where b is repeated: then there is one right side for all that it is repeated over, and no difference for each
/// element, which would be the same in all rounds and so be kept in a register. limit′ is the limit brought near what
/// differences there are, so that the sum does not wrap.
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

/// Of the loop that was copied last, those that it still has.
void Split::shortenMasks(bool behind) {
  for (const Mask &mask : masks)
    if (mask.dim < 0 && !(behind && isPassed(mask)))
      shortenMask(copied.lookup(mask.op->getResult(0)).getDefiningOp<arith::CmpIOp>());
}

void Split::build() {
  known.map(loop.getInductionVar(), constant(0));
  Value first, last; // of the rounds without masks: the position of the first one, and that behind the last one
  Value isInside;    // whether there are any
  for (const Mask &mask : masks) {
    if (mask.factor == 0) {
      const Value fits = emit.compare(arith::CmpIPredicate::sge, restOf(mask), constant(mask.least));
      isInside = isInside ? emit.make<arith::AndIOp>(isInside, fits) : fits;
      continue;
    }
    const Value bound = boundOf(mask);
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
    takeMasks(/*behind=*/true);
    shortenMasks(/*behind=*/true);
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

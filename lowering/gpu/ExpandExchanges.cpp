// Expands exchanges between warps into writes to and reads from shared memory. Conversions within warps are left to
// shuffles.

#include "lowering/Passes.h"

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Abi.h"
#include "lowering/gpu/MoveLayouts.h"
#include "lowering/gpu/SharedPlace.h"
#include "lowering/gpu/ThreadCode.h"
#include "lowering/gpu/Threads.h"
#include "lowering/tile/Combiner.h"
#include "lowering/tile/Console.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_EXPANDEXCHANGES
#include "lowering/gpu/Passes.h.inc"

namespace {

int64_t elementBytes(RankedTensorType tile) { return std::max(1u, tile.getElementTypeBitWidth() / 8); }
TileLayout layoutOf(Type tile) { return simt::layoutOf(tile).getLayout(); }

/// Expands one operation.
class Expander {
public:
  Expander(Operation *op, const simt::SharedLimits &limits) : builder(op), limits(limits), loc(op->getLoc()) {}

  Value buffer(int64_t bytes) {
    const auto type =
        MemRefType::get({bytes}, builder.getI8Type(), MemRefLayoutAttrInterface(), builder.getI64IntegerAttr(3));
    return simt::BufferOp::create(builder, loc, type, IntegerAttr(), IntegerAttr());
  }
  Value write(Value tile, const Place &place) {
    const Value memory = buffer(place.bytes);
    simt::WriteOp::create(builder, loc, tile, memory, builder.getDenseI64ArrayAttr(place.strides), {}, {});
    return memory;
  }
  Value read(Value memory, RankedTensorType tile, const Place &place, Value offset = {}) {
    return simt::ReadOp::create(builder, loc, tile, memory, offset, builder.getDenseI64ArrayAttr(place.strides), {}, {},
                                {});
  }
  /// The tile in another layout.
  Value moved(Value tile, LayoutAttr layout) {
    const auto type = simt::withLayout(tile.getType(), layout);
    const simt::SharedPlan plan = simt::planShared(layoutOf(tile.getType()), layout.getLayout(),
                                                   static_cast<unsigned>(8 * elementBytes(type)), limits);
    const auto sharedLayout = simt::SharedLayoutAttr::of(type, plan.offset);
    const auto by = [&](simt::SharedOp op) {
      return simt::MovementAttr::get(builder.getContext(), static_cast<simt::Movement>(op));
    };
    const Value memory = buffer(sharedLayout.getBytes());
    simt::WriteOp::create(builder, loc, tile, memory, {}, by(plan.store.op), sharedLayout);
    return simt::ReadOp::create(builder, loc, type, memory, {}, {}, by(plan.load.op), sharedLayout, {});
  }

  /// As above, in rounds: of halves of the tile, until each takes at most `maxBytes`. Halves differ in the highest bit
  /// of positions that registers of both layouts have, because the lowest ones are within vectors.
  Value movedInRounds(Value tile, LayoutAttr layout, int64_t maxBytes) {
    const auto type = cast<RankedTensorType>(tile.getType());
    const TileLayout to = layout.getLayout();
    if (type.getNumElements() * elementBytes(type) > maxBytes)
      for (const simt::Vec basis : llvm::reverse(to.bases(Hw::reg))) {
        const simt::Unit unit = to.shape().unitOf(basis);
        const auto halfFrom = layoutOf(type).half(unit.dim, unit.bit), halfTo = to.half(unit.dim, unit.bit);
        if (!halfFrom || !halfTo)
          continue;
        const auto half = RankedTensorType::get(halfFrom->shape().sizes(), type.getElementType(), attribute(*halfFrom));
        Value halves[2];
        for (const int64_t value : {0, 1})
          halves[value] = movedInRounds(simt::HalfOp::create(builder, loc, half, tile, unit.dim, unit.bit, value),
                                        attribute(*halfTo), maxBytes);
        return simt::JoinOp::create(builder, loc, simt::withLayout(type, layout), halves[0], halves[1], unit.dim,
                                    unit.bit);
      }
    return moved(tile, layout);
  }

  /// The result of an operation that moves elements to other threads.
  Value exchanged(tile::MoveOp op);
  Value reduced(tile::ReduceOp op);
  ResultRange scanned(tile::ScanOp op);
  SmallVector<Value> sorted(tile::SortOp op);
  Value taken(tile::TakeOp op);
  Value counted(tile::HistogramOp op);
  Value multiplied(tile::DotOp op);
  void report(tile::CheckOp op);
  void print(tile::PrintOp op);

  OpBuilder builder;

private:
  const simt::SharedLimits &limits;

  SmallVector<Value> comparedInMemory(ValueRange tiles, unsigned axis, unsigned level, unsigned bit);
  SmallVector<Value> reduceInWarps(tile::ReduceKind kind, ValueRange sources, unsigned axis);
  Value indicesAlong(RankedTensorType tile, unsigned axis);
  Value firstOfGreatest(tile::ReduceOp op);
  Value linearIndices(RankedTensorType tile);
  LayoutAttr attribute(const TileLayout &layout) { return LayoutAttr::get(builder.getContext(), layout); }

  const Location loc;
};

// --- Moves -----------------------------------------------------------------------------------------------------------

/// Adds the strides of a linear `expr` to `strides`; returns whether it is linear.
bool addStrides(AffineExpr expr, int64_t factor, MutableArrayRef<int64_t> strides) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    strides[dim.getPosition()] += factor;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() == 0;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add)
    return addStrides(binary.getLHS(), factor, strides) && addStrides(binary.getRHS(), factor, strides);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && constant &&
         addStrides(binary.getLHS(), factor * constant.getValue(), strides);
}

/// The source is in row-major order. If the offsets of the result's elements are linear, as for a reshape, several are
/// read at once; otherwise they are read one by one.
Value Expander::exchanged(tile::MoveOp op) {
  const auto from = cast<RankedTensorType>(op.getMoved().getType()),
             to = cast<RankedTensorType>(op->getResult(0).getType());
  const Place place = densePlace(from.getShape(), elementBytes(from));
  AffineExpr byte = builder.getAffineConstantExpr(0);
  for (const auto [position, stride] : llvm::zip_equal(op.getMoveMap().getResults(), place.strides))
    byte = byte + position * stride;
  const Value buffer = write(op.getMoved(), place);
  Place readPlace{SmallVector<int64_t>(to.getRank(), 0), place.bytes};
  const AffineExpr simplified = simplifyAffineExpr(byte, static_cast<unsigned>(to.getRank()), 0);
  if (addStrides(simplified, 1, readPlace.strides))
    return read(buffer, to, readPlace);
  return simt::PickOp::create(builder, loc, to, buffer, AffineMap::get(to.getRank(), 0, byte));
}

// --- Reductions ------------------------------------------------------------------------------------------------------

/// The bits of the warp number that are positions along the axis, lowest position first.
SmallVector<simt::AxisBit> warpBits(const TileLayout &layout, unsigned axis) {
  SmallVector<simt::AxisBit> bits;
  for (const simt::AxisBit &bit : layout.axisBits(axis))
    if (bit.part == Hw::warp)
      bits.push_back(bit);
  return bits;
}

/// The layout with `extent` along the axis. For bit `index` of a part that is a unit of the axis, `place` returns the
/// new bit along the axis; none removes the unit.
TileLayout withAxis(const TileLayout &layout, unsigned axis, int64_t extent,
                    function_ref<std::optional<unsigned>(Hw part, unsigned index)> place) {
  SmallVector<int64_t> sizes = layout.shape().sizes();
  sizes[axis] = extent;
  const simt::TileShape shape(sizes);
  TileLayout::Bases bases;
  for (const Hw part : simt::everyHw)
    for (const auto [index, basis] : llvm::enumerate(layout.bases(part))) {
      simt::Vec mapped = 0;
      if (basis && layout.shape().unitOf(basis).dim != axis)
        mapped = shape.vectorOf(layout.shape().unitOf(basis));
      else if (basis)
        if (const auto bit = place(part, static_cast<unsigned>(index)))
          mapped = shape.vectorOf({axis, *bit});
      if (mapped || part != Hw::reg)
        bases[static_cast<size_t>(part)].push_back(mapped);
    }
  return TileLayout::get(sizes, bases);
}

/// The layout after each warp has reduced its part: the axis has one position for each warp that shares it.
TileLayout afterWarps(const TileLayout &layout, unsigned axis) {
  const auto bits = warpBits(layout, axis);
  return withAxis(layout, axis, int64_t{1} << bits.size(), [&](Hw part, unsigned index) -> std::optional<unsigned> {
    for (const auto [order, bit] : llvm::enumerate(bits))
      if (part == Hw::warp && bit.index == index)
        return static_cast<unsigned>(order);
    return std::nullopt;
  });
}

/// As above, with all parts in each thread's registers.
TileLayout partsInRegisters(const TileLayout &parts, unsigned axis) {
  TileLayout::Bases bases;
  for (const Hw part : simt::everyHw)
    for (const simt::Vec basis : parts.bases(part))
      bases[static_cast<size_t>(part)].push_back(basis && parts.shape().unitOf(basis).dim == axis ? 0 : basis);
  bases[static_cast<size_t>(Hw::reg)].append(parts.shape().unitsOf(axis));
  return TileLayout::get(parts.shape().sizes(), bases);
}

/// Positions along the axis, as a tile of i32 in the layout of `tile`.
Value Expander::indicesAlong(RankedTensorType tile, unsigned axis) {
  const Type i32 = builder.getI32Type();
  TileLayout layout = simt::layoutOf(tile).getLayout();
  for (unsigned dim = layout.rank(); dim-- > 0;)
    if (dim != axis)
      layout = layout.slice(dim);
  const auto row = RankedTensorType::get({tile.getDimSize(axis)}, i32, attribute(layout));
  Value indices = tile::IotaOp::create(builder, loc, row);
  SmallVector<int64_t> shape(tile.getRank(), 1);
  for (unsigned dim = 0; dim < tile.getRank(); ++dim)
    if (dim != axis)
      layout = layout.expand(dim);
  shape[axis] = tile.getDimSize(axis);
  indices = tile::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, i32, attribute(layout)), indices);
  return tile::BroadcastOp::create(builder, loc, RankedTensorType::get(tile.getShape(), i32, tile.getEncoding()),
                                   indices);
}

SmallVector<Value> Expander::reduceInWarps(tile::ReduceKind kind, ValueRange sources, unsigned axis) {
  const LayoutAttr layout = attribute(afterWarps(simt::layoutOf(sources[0]).getLayout(), axis));
  SmallVector<Type> types;
  for (const Value source : sources) {
    const auto type = cast<RankedTensorType>(source.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] = layout.getShape()[axis];
    types.push_back(RankedTensorType::get(shape, type.getElementType(), layout));
  }
  auto op = simt::ReduceOp::create(builder, loc, types, tile::ReduceKindAttr::get(builder.getContext(), kind), sources,
                                   builder.getI64IntegerAttr(axis));
  return SmallVector<Value>(op.getResults());
}

/// argmax if the axis is within warps: first the maximum, then the least index among elements equal to it. For NaN,
/// which is not equal to itself, it is 0.
Value Expander::firstOfGreatest(tile::ReduceOp op) {
  const auto axis = static_cast<unsigned>(op.getAxis());
  const auto source = cast<RankedTensorType>(op.getSource().getType());
  Emit emit(builder, loc);
  const Value greatest = reduceInWarps(tile::ReduceKind::Max, op.getSource(), axis)[0];
  const Value everywhere = tile::BroadcastOp::create(builder, loc, source, greatest);
  const bool isReal = isa<FloatType>(source.getElementType());
  const Value isGreatest = isReal ? emit.compare(arith::CmpFPredicate::OEQ, op.getSource(), everywhere)
                                  : emit.compare(arith::CmpIPredicate::eq, op.getSource(), everywhere);
  const Value indices = indicesAlong(source, axis);
  const Value candidates = emit.select(isGreatest, indices, emit.integer(indices.getType(), INT32_MAX));
  Value first = reduceInWarps(tile::ReduceKind::Min, candidates, axis)[0];
  if (isReal) {
    const Value isNone = emit.compare(arith::CmpIPredicate::eq, first, emit.integer(first.getType(), INT32_MAX));
    first = emit.select(isNone, emit.integer(first.getType(), 0), first);
  }
  return tile::ReshapeOp::create(builder, loc, op.getType(), first);
}

/// Reduces within warps. If several warps share the axis, their partial results are sent to all of them, and each
/// combines them in the same order.
Value Expander::reduced(tile::ReduceOp op) {
  const auto axis = static_cast<unsigned>(op.getAxis());
  const auto source = cast<RankedTensorType>(op.getSource().getType());
  const Combiner combiner(op.getKind(), source.getElementType());
  if (combiner.hasIndex() && warpBits(simt::layoutOf(source).getLayout(), axis).empty())
    return firstOfGreatest(op);
  Emit emit(builder, loc);
  SmallVector<Value> parts =
      combiner.begin(emit, op.getSource(), combiner.hasIndex() ? indicesAlong(source, axis) : Value());
  parts = reduceInWarps(op.getKind(), parts, axis);
  const TileLayout shared = simt::layoutOf(parts[0]).getLayout();
  if (shared.shape()[axis].size > 1) {
    const LayoutAttr all = attribute(partsInRegisters(shared, axis));
    for (Value &part : parts)
      part = moved(part, all);
    parts = reduceInWarps(op.getKind(), parts, axis);
  }
  return tile::ReshapeOp::create(builder, loc, op.getType(), Combiner::end(parts));
}

/// Scans within warps. If several warps share the axis, they exchange totals.
ResultRange Expander::scanned(tile::ScanOp op) {
  const auto axis = static_cast<unsigned>(op.getAxis());
  const simt::ScanPlan plan = *simt::planScan(layoutOf(op.getSources()[0].getType()), axis);
  SmallVector<int64_t> bytes;
  for (const Value source : op.getSources())
    bytes.push_back(elementBytes(cast<RankedTensorType>(source.getType())));
  const Value totals = plan.crossesWarps() ? buffer(plan.offsets(bytes).back()) : Value();
  const auto half = [&](auto made) {
    IRMapping values;
    op.getBy().cloneInto(&made.getBy(), values);
    return made;
  };
  auto scan = half(simt::ScanOp::create(builder, loc, op.getResultTypes(), op.getKindAttr(), op.getSources(), totals,
                                        op.getAxisAttr(), op.getReverseAttr()));
  if (!totals)
    return scan->getResults();
  auto carry = half(simt::CarryOp::create(builder, loc, op.getResultTypes(), op.getKindAttr(), scan->getResults(),
                                          totals, op.getAxisAttr(), op.getReverseAttr()));
  return carry->getResults();
}

// --- Sorts, gathers and histograms: positions depend on values ------------------------------------------------------

/// A stage of a sort (simt.sort) for a warp bit: each thread reads the elements that its own are compared with.
SmallVector<Value> Expander::comparedInMemory(ValueRange tiles, unsigned axis, unsigned level, unsigned bit) {
  Emit emit(builder, loc);
  SmallVector<Value> others;
  for (const Value tile : tiles) {
    const auto type = cast<RankedTensorType>(tile.getType());
    const Place place = densePlace(type.getShape(), elementBytes(type));
    AffineExpr byte = builder.getAffineConstantExpr(0);
    for (const auto [dim, stride] : llvm::enumerate(place.strides)) {
      AffineExpr position = builder.getAffineDimExpr(static_cast<unsigned>(dim));
      const int64_t weight = int64_t{1} << bit;
      if (dim == axis) // with the bit inverted
        position = position + weight - position.floorDiv(weight) % 2 * (2 * weight);
      byte = byte + position * stride;
    }
    others.push_back(simt::PickOp::create(builder, loc, type, write(tile, place),
                                          AffineMap::get(static_cast<unsigned>(type.getRank()), 0, byte)));
  }
  const Value indices = indicesAlong(cast<RankedTensorType>(tiles[0].getType()), axis);
  const auto shifted = [&](unsigned by) {
    return emit.make<arith::ShRUIOp>(indices, emit.integer(indices.getType(), by));
  };
  const Value differ = emit.make<arith::AndIOp>(emit.make<arith::XOrIOp>(shifted(bit), shifted(level)),
                                                emit.integer(indices.getType(), 1));
  const Value takesSmaller = emit.compare(arith::CmpIPredicate::eq, differ, emit.integer(indices.getType(), 0));
  Value isSmaller = emit.compare(arith::CmpIPredicate::slt, tiles[0], others[0]);
  if (tiles.size() == 2) {
    const Value equal = emit.compare(arith::CmpIPredicate::eq, tiles[0], others[0]),
                tie = emit.compare(arith::CmpIPredicate::slt, tiles[1], others[1]);
    isSmaller = emit.make<arith::OrIOp>(isSmaller, emit.make<arith::AndIOp>(equal, tie));
  }
  const Value keeps = emit.compare(arith::CmpIPredicate::eq, isSmaller, takesSmaller);
  SmallVector<Value> chosen;
  for (const auto [tile, other] : llvm::zip_equal(tiles, others))
    chosen.push_back(emit.select(keeps, tile, other));
  return chosen;
}

/// Stages within warps, and between them stages through shared memory.
SmallVector<Value> Expander::sorted(tile::SortOp op) {
  SmallVector<Value> tiles = {op.getSource()};
  if (op.getTies())
    tiles.push_back(op.getTies());
  const auto axis = static_cast<unsigned>(op.getAxis());
  const auto bits = layoutOf(op.getSource().getType()).axisBits(axis);
  const int64_t end = simt::SortOp::numStages(static_cast<int64_t>(bits.size()));
  const auto isOfWarps = [&](int64_t stage) { return bits[simt::SortOp::stageOf(stage).second].part == Hw::warp; };
  const bool isBitonic = op->hasAttr("simt.bitonic"); // then only the last level is needed
  for (int64_t stage = isBitonic ? end - static_cast<int64_t>(bits.size()) : 0; stage < end;) {
    if (isOfWarps(stage)) {
      const auto [level, bit] = simt::SortOp::stageOf(stage++);
      tiles = comparedInMemory(tiles, axis, level, bit);
      continue;
    }
    const int64_t begin = stage;
    while (stage < end && !isOfWarps(stage))
      ++stage;
    auto stages = simt::SortOp::create(builder, loc, ValueRange(tiles).getTypes(), tiles, op.getAxisAttr(),
                                       builder.getDenseI64ArrayAttr({begin, stage}));
    tiles.assign(stages.getResults().begin(), stages.getResults().end());
  }
  return tiles;
}

/// The byte offset `number` · size, or −1 unless the number is below `end`, as i32.
static Value placeOf(Emit &emit, Value number, int64_t end, int64_t size, Value mask = {}) {
  Value within = emit.compare(arith::CmpIPredicate::ult, number, emit.integer(number.getType(), end));
  if (mask)
    within = emit.make<arith::AndIOp>(within, mask);
  const Type i32 = typeLike(number.getType(), IntegerType::get(number.getContext(), 32));
  const Value narrow = number.getType() == i32 ? number : emit.make<arith::TruncIOp>(i32, number);
  return emit.select(within, emit.make<arith::MulIOp>(narrow, emit.integer(i32, size)), emit.integer(i32, -1));
}

/// The source is in row-major order.
Value Expander::taken(tile::TakeOp op) {
  Emit emit(builder, loc);
  const RankedTensorType from = op.getSource().getType(), to = op.getType();
  const auto axis = static_cast<unsigned>(op.getAxis());
  const Place place = densePlace(from.getShape(), elementBytes(from));
  const Value buffer = write(op.getSource(), place);
  Value places = placeOf(emit, op.getIndex(), from.getDimSize(axis), place.strides[axis]);
  const Value isNone = emit.compare(arith::CmpIPredicate::slt, places, emit.integer(places.getType(), 0));
  for (unsigned dim = 0; dim < from.getRank(); ++dim)
    if (dim != axis && from.getDimSize(dim) > 1) {
      const Value positions = indicesAlong(to, dim);
      const Value bytes = emit.make<arith::MulIOp>(positions, emit.integer(positions.getType(), place.strides[dim]));
      places = emit.make<arith::AddIOp>(places, bytes);
    }
  places = emit.select(isNone, emit.integer(places.getType(), -1), places);
  return simt::LookUpOp::create(builder, loc, to, buffer, places);
}

Value Expander::counted(tile::HistogramOp op) {
  Emit emit(builder, loc);
  const Place place = densePlace(op.getType().getShape(), elementBytes(op.getType()));
  const Value buffer = write(emit.integer(op.getType(), 0), place);
  const Value places = placeOf(emit, op.getSource(), op.getType().getDimSize(0), place.strides[0], op.getMask());
  simt::CountOp::create(builder, loc, buffer, places);
  return read(buffer, op.getType(), place);
}

// --- Products --------------------------------------------------------------------------------------------------------

/// Steps along K whose operands a thread holds at a time: a power of two that divides K.
int64_t stepsAtOnce(int64_t K) { return std::min<int64_t>(8, K & -K); }

/// An outer product for each step along K, its operands read from shared memory a few steps at a time.
Value Expander::multiplied(tile::DotOp op) {
  const auto a = cast<RankedTensorType>(op.getA().getType()), b = cast<RankedTensorType>(op.getB().getType());
  const TileLayout acc = simt::layoutOf(op.getAcc()).getLayout();
  const int64_t rank = a.getRank(), K = a.getDimSize(rank - 1), steps = stepsAtOnce(K);
  const auto part = [&](RankedTensorType tile, bool isRight) {
    SmallVector<int64_t> shape(tile.getShape());
    shape[rank - (isRight ? 2 : 1)] = steps;
    return RankedTensorType::get(
        shape, tile.getElementType(),
        attribute(simt::fmaOperand(acc, isRight ? simt::MmaOperand::B : simt::MmaOperand::A, steps)));
  };
  const RankedTensorType leftPart = part(a, false), rightPart = part(b, true);
  const Place left = cheapestPlace(a.getShape(), elementBytes(a), {{layoutOf(a)}, {layoutOf(leftPart), K / steps}}),
              right = cheapestPlace(b.getShape(), elementBytes(b), {{layoutOf(b)}, {layoutOf(rightPart), K / steps}});
  const Value leftBuffer = write(op.getA(), left), rightBuffer = write(op.getB(), right);
  const auto step = [&](Value k, Value sum) {
    const auto offset = [&](int64_t stride) -> Value {
      if (!k)
        return {};
      return arith::MulIOp::create(builder, loc, k, arith::ConstantIntOp::create(builder, loc, stride, 32));
    };
    const Value x = read(leftBuffer, leftPart, left, offset(left.strides[rank - 1])),
                y = read(rightBuffer, rightPart, right, offset(right.strides[rank - 2]));
    return tile::DotOp::create(builder, loc, x, y, sum, op.getPrecision()).getResult();
  };
  if (steps == K)
    return step({}, op.getAcc());
  const auto constant = [&](int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); };
  auto loop = scf::ForOp::create(builder, loc, constant(0), constant(K), constant(steps), op.getAcc());
  builder.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(builder, loc, step(loop.getInductionVar(), loop.getRegionIterArg(0)));
  builder.setInsertionPointAfter(loop);
  return loop.getResult(0);
}

// --- The console -----------------------------------------------------------------------------------------------------

/// The position of each element in row-major order, i32, as a tile like `tile`.
Value Expander::linearIndices(RankedTensorType tile) {
  Value sum;
  int64_t stride = 1;
  for (unsigned axis = tile.getRank(); axis-- > 0; stride *= tile.getDimSize(axis)) {
    Value term = indicesAlong(tile, axis);
    const auto factor = DenseElementsAttr::get(cast<ShapedType>(term.getType()), builder.getI32IntegerAttr(stride));
    term = arith::MulIOp::create(builder, loc, term, arith::ConstantOp::create(builder, loc, factor));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
  }
  return sum;
}

/// The first element that is false, by its index.
void Expander::report(tile::CheckOp op) {
  const Value condition = op.getCondition();
  const auto constant = [&](int64_t value, Type type) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value)).getResult();
  };
  Value failed, element = constant(0, builder.getI64Type());
  if (auto tile = dyn_cast<RankedTensorType>(condition.getType())) {
    const Value indices = linearIndices(tile);
    const auto none = builder.getI32IntegerAttr(INT32_MAX);
    const Value nowhere = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(cast<ShapedType>(indices.getType()), Attribute(none)));
    Value first = arith::SelectOp::create(builder, loc, condition, nowhere, indices);
    while (isa<RankedTensorType>(first.getType())) {
      const auto type = cast<RankedTensorType>(first.getType());
      const int64_t axis = type.getRank() - 1;
      const Type rest = axis == 0
                            ? builder.getI32Type()
                            : Type(RankedTensorType::get(
                                  type.getShape().drop_back(), builder.getI32Type(),
                                  attribute(simt::layoutOf(type).getLayout().slice(static_cast<unsigned>(axis)))));
      auto reduce = tile::ReduceOp::create(builder, loc, rest, tile::ReduceKind::Min, first, axis);
      first = reduced(reduce);
      reduce.erase();
    }
    failed =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, first, constant(INT32_MAX, builder.getI32Type()));
    element = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), first);
  } else {
    failed = arith::XOrIOp::create(builder, loc, condition, constant(1, builder.getI1Type()));
  }
  simt::ReportOp::create(builder, loc, element, emitLinearProgram(builder, loc), textNumber(op, "tile.message"),
                         textNumber(op, "tile.where"), failed);
}

/// One thread allocates the line, and sends its address to the others.
void Expander::print(tile::PrintOp op) {
  Value value = op.getValue();
  const auto warps = static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>()));
  const LayoutAttr single = attribute(simt::blocked({1}, {0}, {1}, warps));
  SmallVector<int64_t> shape(tile::shapeOf(value.getType()));
  if (shape.empty())
    value = tile::SplatOp::create(builder, loc, RankedTensorType::get({1}, value.getType(), single), value);
  const auto type = cast<RankedTensorType>(value.getType());
  const int64_t bytes = sizeof(abi::GpuLine) + llvm::alignTo(type.getNumElements() * elementBytes(type), 8);
  const Value taken =
      simt::ReserveOp::create(builder, loc, RankedTensorType::get({1}, builder.getI64Type(), single), bytes);
  auto line = simt::PrintOp::create(builder, loc, value, moved(taken, single), emitLinearProgram(builder, loc),
                                    textNumber(op, "tile.label"), shape);
  if (Attribute element = op->getAttr("tile.element"))
    line->setAttr("tile.element", element);
}

} // namespace

namespace {
struct ExpandExchanges : impl::ExpandExchangesBase<ExpandExchanges> {
  using ExpandExchangesBase::ExpandExchangesBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr("tile.kernel"))
      return;
    const simt::SharedLimits limits = {.bytes = INT64_MAX, .hasStoreMatrix = storeMatrix};
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) { operations.push_back(op); });
    for (Operation *op : operations)
      if (auto check = dyn_cast<tile::CheckOp>(op)) {
        Expander(op, limits).report(check);
        op->erase();
      } else if (auto print = dyn_cast<tile::PrintOp>(op)) {
        Expander(op, limits).print(print);
        op->erase();
      } else if (auto scan = dyn_cast<tile::ScanOp>(op)) {
        op->replaceAllUsesWith(Expander(op, limits).scanned(scan));
        op->erase();
      } else if (auto sort = dyn_cast<tile::SortOp>(op)) {
        const SmallVector<Value> tiles = Expander(op, limits).sorted(sort);
        for (auto [result, tile] : llvm::zip(op->getResults(), tiles))
          result.replaceAllUsesWith(tile);
        op->erase();
      } else if (const Value expanded = expand(op, limits)) {
        op->getResult(0).replaceAllUsesWith(expanded);
        op->erase();
      }
  }

  /// One of the threads that hold the same elements executed the atomic; it sends the old value to the others.
  static void tellAll(tile::AccessOp op, Expander &expander) {
    if (op->getNumResults() == 0)
      return;
    Value result = op->getResult(0);
    const TileLayout layout = simt::layoutOf(result).getLayout();
    if (result.use_empty() || !(layout.replicated(Hw::lane) || layout.replicated(Hw::warp)))
      return;
    expander.builder.setInsertionPointAfter(op);
    const Value told = expander.moved(result, simt::layoutOf(result));
    result.replaceUsesWithIf(told, [](OpOperand &use) { return !isa<simt::WriteOp>(use.getOwner()); });
  }

  Value expand(Operation *op, const simt::SharedLimits &limits) {
    Expander expander(op, limits);
    if (auto convert = dyn_cast<simt::ConvertOp>(op)) {
      const LayoutAttr from = simt::layoutOf(convert.getSource()), to = simt::layoutOf(convert.getResult());
      const auto bits = static_cast<unsigned>(8 * elementBytes(convert.getType()));
      const bool leavesWarps = simt::planConvert(from.getLayout(), to.getLayout(), bits, limits).isShared();
      return leavesWarps ? expander.movedInRounds(convert.getSource(), to, int64_t(maxBytes)) : Value();
    }
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      return expander.reduced(reduce);
    if (auto take = dyn_cast<tile::TakeOp>(op))
      return expander.taken(take);
    if (auto histogram = dyn_cast<tile::HistogramOp>(op))
      return expander.counted(histogram);
    if (auto dot = dyn_cast<tile::DotOp>(op))
      return dot->hasAttr("simt.mma") ? Value() : expander.multiplied(dot);
    if (auto move = dyn_cast<tile::MoveOp>(op)) {
      const LayoutAttr from = simt::layoutOf(move.getMoved()), to = simt::layoutOf(op->getResult(0));
      const bool leavesThreads = from && to && !isRenaming(move, from.getLayout(), to.getLayout());
      return leavesThreads ? expander.exchanged(move) : Value();
    }
    if (auto access = dyn_cast<tile::AccessOp>(op); access && access.isAtomic())
      tellAll(access, expander);
    return {};
  }
};
} // namespace

} // namespace kiln::lowering::gpu

// The reference backend's sorts, gathers along an axis and histograms.
//
// A sort inserts one element after another among those before it, as far as the result has positions.

#include "dialect/tile/TileDialect.h"
#include "lowering/generic/TileBuffers.h"
#include "lowering/tile/Emit.h"

using namespace mlir;

namespace kiln::lowering::generic {

/// Whether a key, or the tie of an equal key, precedes another. Without ties equal keys are indistinguishable.
static Value isBefore(Emit &emit, ArrayRef<Value> a, ArrayRef<Value> b) {
  const Value less = emit.compare(arith::CmpIPredicate::slt, a[0], b[0]);
  if (a.size() == 1)
    return less;
  const Value equal = emit.compare(arith::CmpIPredicate::eq, a[0], b[0]),
              tie = emit.compare(arith::CmpIPredicate::slt, a[1], b[1]);
  return emit.make<arith::OrIOp>(less, emit.make<arith::AndIOp>(equal, tie));
}

/// Insertion sort along each line: every element is exchanged with those that it precedes.
static void lowerSort(TileBuffers &tiles, tile::SortOp op) {
  const Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  Emit emit(b, loc);
  const auto axis = static_cast<int64_t>(op.getAxis());
  SmallVector<int64_t> outside(tile::shapeOf(op.getSource().getType()));
  outside.erase(outside.begin() + axis);
  SmallVector<Value> sources = {op.getSource()}, results = {tiles.create(op.getResult())};
  if (op.getTies()) {
    sources.push_back(op.getTies());
    results.push_back(tiles.create(op.getPositions()));
  }
  const auto line = [&](ValueRange outer) {
    const auto indicesAt = [&](Value position) {
      SmallVector<Value> indices(outer);
      indices.insert(indices.begin() + axis, position);
      return indices;
    };
    const auto readAll = [&](ArrayRef<Value> buffers, Value position) {
      SmallVector<Value> values;
      for (const auto [source, buffer] : llvm::zip_equal(sources, buffers))
        values.push_back(tiles.read(loc, getElementTypeOrSelf(source.getType()), buffer, indicesAt(position)));
      return values;
    };
    const auto write = [&](ValueRange values, Value position) {
      for (const auto [value, result] : llvm::zip_equal(values, results))
        tiles.write(loc, value, result, indicesAt(position));
    };
    const Value zero = tiles.index(loc, 0), one = tiles.index(loc, 1), count = tiles.index(loc, op.getCount());
    const auto buffers = llvm::map_to_vector(sources, [&](Value source) { return tiles.of(source); });
    auto elements = scf::ForOp::create(b, loc, zero, tiles.index(loc, op.getExtent()), one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(elements.getBody());
    const Value number = elements.getInductionVar(), end = arith::MinUIOp::create(b, loc, number, count);
    auto places = scf::ForOp::create(b, loc, zero, end, one, readAll(buffers, number));
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(places.getBody());
      const SmallVector<Value> there = readAll(results, places.getInductionVar()),
                               carried(places.getRegionIterArgs().begin(), places.getRegionIterArgs().end());
      const Value before = isBefore(emit, carried, there);
      SmallVector<Value> stay, go;
      for (const auto [mine, its] : llvm::zip_equal(carried, there)) {
        stay.push_back(emit.select(before, mine, its));
        go.push_back(emit.select(before, its, mine));
      }
      write(stay, places.getInductionVar());
      scf::YieldOp::create(b, loc, go);
    }
    const Value hasPlace = emit.compare(arith::CmpIPredicate::ult, number, count);
    auto last = scf::IfOp::create(b, loc, hasPlace);
    b.setInsertionPointToStart(last.thenBlock());
    write(places.getResults(), number);
  };
  if (outside.empty())
    line({});
  else
    tiles.loops(loc, outside, line);
}

/// `number` as an index if it is in [0, end), otherwise 0; and whether it is.
static std::pair<Value, Value> withinOrZero(TileBuffers &tiles, Location loc, Value number, int64_t end) {
  OpBuilder &b = tiles.builder;
  Emit emit(b, loc);
  const Value within = emit.compare(arith::CmpIPredicate::ult, number, emit.integer(number.getType(), end));
  const Value position = arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  return {emit.select(within, position, tiles.index(loc, 0)), within};
}

static void lowerTake(TileBuffers &tiles, tile::TakeOp op) {
  const Location loc = op.getLoc();
  const Type element = op.getSource().getType().getElementType(), number = op.getIndex().getType().getElementType();
  const int64_t extent = op.getSource().getType().getDimSize(op.getAxis());
  const Value source = tiles.of(op.getSource()), index = tiles.of(op.getIndex()), result = tiles.create(op.getResult());
  tiles.loops(loc, op.getType().getShape(), [&](ValueRange at) {
    const auto [place, within] = withinOrZero(tiles, loc, tiles.read(loc, number, index, at), extent);
    SmallVector<Value> from(at);
    from[op.getAxis()] = place;
    const Value zero =
        arith::ConstantOp::create(tiles.builder, loc, cast<TypedAttr>(tiles.builder.getZeroAttr(element)));
    const Value taken = tiles.read(loc, element, source, from);
    tiles.write(loc, arith::SelectOp::create(tiles.builder, loc, within, taken, zero), result, at);
  });
}

static void lowerHistogram(TileBuffers &tiles, tile::HistogramOp op) {
  const Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  const Type number = op.getSource().getType().getElementType();
  const int64_t bins = op.getType().getDimSize(0);
  const Value source = tiles.of(op.getSource()), result = tiles.create(op.getResult());
  tiles.loops(loc, {bins},
              [&](ValueRange at) { tiles.write(loc, arith::ConstantIntOp::create(b, loc, 0, 32), result, at); });
  tiles.loops(loc, op.getSource().getType().getShape(), [&](ValueRange at) {
    auto [bin, counts] = withinOrZero(tiles, loc, tiles.read(loc, number, source, at), bins);
    if (op.getMask())
      counts = arith::AndIOp::create(b, loc, counts, tiles.read(loc, b.getI1Type(), tiles.of(op.getMask()), at));
    const Value one = arith::ExtUIOp::create(b, loc, b.getI32Type(), counts);
    const Value before = tiles.read(loc, b.getI32Type(), result, bin);
    tiles.write(loc, arith::AddIOp::create(b, loc, before, one), result, bin);
  });
}

bool lowerSorts(TileBuffers &tiles, Operation *op) {
  if (auto sort = dyn_cast<tile::SortOp>(op))
    lowerSort(tiles, sort);
  else if (auto take = dyn_cast<tile::TakeOp>(op))
    lowerTake(tiles, take);
  else if (auto histogram = dyn_cast<tile::HistogramOp>(op))
    lowerHistogram(tiles, histogram);
  else
    return false;
  return true;
}

} // namespace kiln::lowering::generic

// The reference backend's reductions, scans and matrix product.
//
// Reductions and scans combine the elements along their axis in index order, beginning with element 0. The product adds
// its terms in the order of k, each by fma. k is the middle loop, so that the innermost one runs along rows.

#include "lowering/generic/TileBuffers.h"
#include "lowering/tile/Combiner.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kiln::lowering::generic {

/// The reduction of one line of the source; `lineAt` gives the indices of its element at a position.
static Value reduceLine(TileBuffers &tiles, tile::ReduceOp op, int64_t extent,
                        function_ref<SmallVector<Value>(Value)> lineAt) {
  Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  Type element = getElementTypeOrSelf(op.getSource().getType());
  const Combiner combiner(op.getKind(), element);
  Emit emit(b, loc);
  Value source = tiles.of(op.getSource());
  const auto stateAt = [&](Value position) {
    Value index = arith::IndexCastOp::create(b, loc, b.getI32Type(), position);
    return combiner.begin(emit, tiles.read(loc, element, source, lineAt(position)), index);
  };
  auto loop = scf::ForOp::create(b, loc, tiles.index(loc, 1), tiles.index(loc, extent), tiles.index(loc, 1),
                                 stateAt(tiles.index(loc, 0)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  const Combiner::State before(ValueRange(loop.getRegionIterArgs()));
  scf::YieldOp::create(b, loc, combiner.combine(emit, before, stateAt(loop.getInductionVar())));
  return Combiner::end(loop.getResults());
}

void lowerReduce(TileBuffers &tiles, tile::ReduceOp op) {
  Location loc = op.getLoc();
  auto shape = tile::shapeOf(op.getSource().getType());
  int64_t axis = op.getAxis();
  auto line = [&](ValueRange outer) {
    return reduceLine(tiles, op, shape[axis], [&](Value position) {
      SmallVector<Value> indices(outer);
      indices.insert(indices.begin() + axis, position);
      return indices;
    });
  };
  if (!isa<RankedTensorType>(op.getType())) {
    op.getResult().replaceAllUsesWith(line({}));
    return;
  }
  Value result = tiles.create(op.getResult());
  tiles.loops(loc, tile::shapeOf(op.getType()),
              [&](ValueRange outer) { tiles.write(loc, line(outer), result, outer); });
}

/// Along each line, the combination of the elements so far is the result's element.
void lowerScan(TileBuffers &tiles, tile::ScanOp op) {
  Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  const Combiner combiner = Combiner::of(op);
  Emit emit(b, loc);
  SmallVector<int64_t> outside(tile::shapeOf(op.getSources()[0].getType()));
  const auto axis = static_cast<int64_t>(op.getAxis());
  const int64_t extent = outside[axis];
  outside.erase(outside.begin() + axis);
  SmallVector<Value> results;
  for (Value result : op.getResults())
    results.push_back(tiles.create(result));
  const auto line = [&](ValueRange outer) {
    const auto positionOf = [&](Value number) {
      SmallVector<Value> indices(outer);
      if (op.getReverse())
        number = arith::SubIOp::create(b, loc, tiles.index(loc, extent - 1), number);
      indices.insert(indices.begin() + axis, number);
      return indices;
    };
    const auto stateAt = [&](Value number) {
      Combiner::State state;
      for (Value source : op.getSources())
        state.push_back(tiles.read(loc, getElementTypeOrSelf(source.getType()), tiles.of(source), positionOf(number)));
      return state;
    };
    const auto write = [&](const Combiner::State &state, Value number) {
      for (auto [value, result] : llvm::zip(state, results))
        tiles.write(loc, value, result, positionOf(number));
    };
    const Combiner::State first = stateAt(tiles.index(loc, 0));
    write(first, tiles.index(loc, 0));
    auto loop = scf::ForOp::create(b, loc, tiles.index(loc, 1), tiles.index(loc, extent), tiles.index(loc, 1), first);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    const Combiner::State before(ValueRange(loop.getRegionIterArgs()));
    const Combiner::State both = combiner.combine(emit, before, stateAt(loop.getInductionVar()));
    write(both, loop.getInductionVar());
    scf::YieldOp::create(b, loc, both);
  };
  if (outside.empty())
    return line({});
  tiles.loops(loc, outside, line);
}

/// An operand's element in the accumulator's type, which represents it exactly.
static Value widen(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

void lowerDot(TileBuffers &tiles, tile::DotOp op) {
  Location loc = op.getLoc();
  OpBuilder &b = tiles.builder;
  Type operand = getElementTypeOrSelf(op.getA().getType()), sum = getElementTypeOrSelf(op.getType());
  Value a = tiles.of(op.getA()), bBuffer = tiles.of(op.getB()), result = tiles.create(op.getResult());
  tiles.copy(loc, tiles.of(op.getAcc()), result);
  SmallVector<int64_t> extents(tile::shapeOf(op.getA().getType())); // the leading extents, M, K and N
  extents.push_back(tile::shapeOf(op.getB().getType()).back());
  tiles.loops(loc, extents, [&](ValueRange at) {
    const auto indices = [&](Value row, Value column) {
      SmallVector<Value> index(at.drop_back(3));
      index.append({row, column});
      return index;
    };
    const Value m = at[at.size() - 3], k = at[at.size() - 2], n = at.back();
    Value left = widen(b, loc, tiles.read(loc, operand, a, indices(m, k)), sum);
    Value right = widen(b, loc, tiles.read(loc, operand, bBuffer, indices(k, n)), sum);
    Value acc = tiles.read(loc, sum, result, indices(m, n));
    if (isa<FloatType>(sum))
      acc = math::FmaOp::create(b, loc, left, right, acc);
    else
      acc = arith::AddIOp::create(b, loc, acc, arith::MulIOp::create(b, loc, left, right));
    tiles.write(loc, acc, result, indices(m, n));
  });
}

} // namespace kiln::lowering::generic

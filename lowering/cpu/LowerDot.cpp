// Matrix products: result = a · b + acc.
//
//   1. b is packed into panels of two vectors of columns, one row of the panel for each k, so that the micro-kernel
//      streams through them. Whatever b is computed from is computed while packing; a transposed b is read along its
//      rows and turned block by block in registers.
//   2. a is read in place, one scalar at a time, where it lies whole inside its view; else a zero-padded copy is read.
//   3. The micro-kernel keeps `rows` × 2 vectors of the result in registers over the whole of K, then adds the
//      accumulator once: a long sum over tiles of K is a sum of short chains.
//
// Panels are one row longer than K: panels of a power of two bytes would compete for the same cache sets.

#include "lowering/cpu/LowerDot.h"
#include "lowering/cpu/Loops.h"

using namespace mlir;

namespace kiln::lowering::cpu {

Value allocateBuffer(OpBuilder &builder, Location loc, Type tile, Machine machine, int64_t skew) {
  SmallVector<int64_t> shape(tile::shapeOf(tile));
  shape.back() = llvm::divideCeil(shape.back(), machine.lanes()) * machine.lanes() + skew;
  Type element = getElementTypeOrSelf(tile);
  if (element.isInteger(1))
    element = builder.getI8Type();
  return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, element), builder.getI64IntegerAttr(64));
}

void widenDotOperands(func::FuncOp function) {
  function.walk([](tile::DotOp dot) {
    Type element = cast<RankedTensorType>(dot.getType()).getElementType();
    OpBuilder b(dot);
    for (OpOperand *operand : {&dot.getAMutable(), &dot.getBMutable()}) {
      auto type = cast<RankedTensorType>(operand->get().getType());
      if (type.getElementType() == element)
        continue;
      auto wide = RankedTensorType::get(type.getShape(), element);
      operand->set(isa<FloatType>(element) ? arith::ExtFOp::create(b, dot.getLoc(), wide, operand->get()).getResult()
                                           : arith::ExtSIOp::create(b, dot.getLoc(), wide, operand->get()).getResult());
    }
  });
}

namespace {

/// A load that ends at a view's edge: along `axis` of the tile only that many positions can be other than padding.
struct Edge {
  tile::LoadOp load;
  int64_t axis;
};

class Dot {
public:
  Dot(tile::DotOp dot, Value result, bool inPlace, Machine machine, const DenseMap<Value, Value> &buffers)
      : dot(dot), result(result), inPlace(inPlace), machine(machine), buffers(buffers),
        e(dot.getLoc(), machine, buffers), element(getElementTypeOrSelf(dot.getType())),
        M(tile::shapeOf(dot.getType())[0]), N(tile::shapeOf(dot.getType())[1]),
        K(tile::shapeOf(dot.getA().getType())[1]), lanes(machine.lanes()),
        rows(std::min<int64_t>(M, machine.registers >= 32 ? 8 : 6)) {
    e.levels.push_back({dot->getBlock(), dot});
  }

  void emit() {
    trim();
    readA();
    packB();
    multiply();
  }

private:
  // --- How far K, M and N really go ---------------------------------------------------------------------------------

  /// The load behind an operand's dimension `axis`, through transposes, if what lies outside it is zero.
  std::optional<Edge> edgeOf(Value tile, int64_t axis) {
    while (Operation *op = tile.getDefiningOp()) {
      if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
        axis = transpose.getPermutation()[axis];
        tile = transpose.getSource();
      } else if (isa<arith::ExtFOp, arith::ExtSIOp>(op)) {
        tile = op->getOperand(0);
      } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
        bool zero = load.getPadding() == tile::Padding::Zero;
        if (zero && load.getView().getType().isDynamicDim(axis))
          return Edge{load, axis};
        return std::nullopt;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// Positions of the edge's axis that can be other than zero: min(extent, dim − offset), not below 0; else `extent`.
  Value boundOf(std::optional<Edge> edge, int64_t extent) {
    if (!edge)
      return e.constantIndex(extent);
    Value dim = e.asIndex(
        e.make<tile::DimOp>(e.builder.getI64Type(), edge->load.getView(), e.builder.getI64IntegerAttr(edge->axis)));
    Value left = e.make<arith::SubIOp>(dim, e.asIndex(edge->load.getOffsets()[edge->axis]));
    return e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(left, e.constantIndex(extent)), e.constantIndex(0));
  }

  void trim() {
    auto edge = edgeOf(dot.getA(), 1);
    kBound = boundOf(edge ? edge : edgeOf(dot.getB(), 0), K);
    bool keeps = inPlace && buffers.lookup(dot.getAcc()) == result; // rows and columns left out keep what they hold
    mBound = keeps ? boundOf(edgeOf(dot.getA(), 0), M) : e.constantIndex(M);
    nBound = keeps ? boundOf(edgeOf(dot.getB(), 1), N) : e.constantIndex(N);
  }

  // --- a ------------------------------------------------------------------------------------------------------------

  void readA() {
    Value tile = dot.getA();
    while (auto transpose = tile.getDefiningOp<tile::TransposeOp>()) { // of rank 2: it swaps
      tile = transpose.getSource();
      swapped = !swapped;
    }
    if (auto reshape = tile.getDefiningOp<tile::ReshapeOp>())
      if (M != 1 && K != 1 && differsByUnits(reshape.getSource().getType(), tile.getType()) &&
          viewLoad(reshape.getSource()))
        tile = reshape.getSource();
    a = buffers.lookup(tile);
    if (a)
      return;
    if (tile::LoadOp load = viewLoad(tile))
      a = readView(load);
    else
      a = copyOf(tile, dot);
  }

  tile::LoadOp viewLoad(Value tile) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!load || !load->hasAttr("cpu.view") || buffers.lookup(tile) ||
        getElementTypeOrSelf(tile.getType()) != element || load.getView().getType().getElementType() != element)
      return {};
    return load;
  }

  Value copyOf(Value tile, Operation *before) {
    OpBuilder b(before);
    Value copy = allocateBuffer(b, dot.getLoc(), tile.getType(), machine, machine.lanes());
    Root root{Root::Kind::place, before, tile, copy, -1};
    emitLoops(root, before, machine, buffers);
    return copy;
  }

  /// The tile inside its view as a memref of rank 2, or a padded copy where it reaches over an edge.
  Value readView(tile::LoadOp load) {
    auto view = load.getView().getType();
    auto extents = tile::shapeOf(load.getType());
    Value inside;
    SmallVector<OpFoldResult> offsets, sizes, steps(extents.size(), e.builder.getIndexAttr(1));
    for (auto [axis, extent] : llvm::enumerate(extents)) {
      Value offset = e.asIndex(load.getOffsets()[axis]);
      Value dim =
          e.asIndex(e.make<tile::DimOp>(e.builder.getI64Type(), load.getView(), e.builder.getI64IntegerAttr(axis)));
      Value last = e.make<arith::SubIOp>(dim, e.constantIndex(extent));
      Value ok = e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, offset, last);
      if (!isNonNegative(load.getOffsets()[axis]))
        ok = e.make<arith::AndIOp>(ok, e.make<arith::CmpIOp>(arith::CmpIPredicate::sge, offset, e.constantIndex(0)));
      inside = inside ? e.make<arith::AndIOp>(inside, ok) : ok;
      offsets.push_back(offset);
      sizes.push_back(e.builder.getIndexAttr(extent));
    }
    SmallVector<int64_t> strides, flat;
    int64_t offset;
    (void)view.getStridesAndOffset(strides, offset);
    for (auto [axis, extent] : llvm::enumerate(extents))
      if (extent != 1 || extents.size() == 2)
        flat.push_back(strides[axis]);
    SmallVector<int64_t> shape = swapped ? SmallVector<int64_t>{K, M} : SmallVector<int64_t>{M, K};
    if (flat[1] != 1)
      flat[1] = ShapedType::kDynamic;
    flat[0] = ShapedType::kDynamic;
    auto type =
        MemRefType::get(shape, element, StridedLayoutAttr::get(e.builder.getContext(), ShapedType::kDynamic, flat));
    e.moveTo(0);
    auto branch = scf::IfOp::create(e.builder, e.loc, TypeRange{type}, inside, /*withElse=*/true);
    OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
    auto narrow = memref::SubViewOp::inferRankReducedResultType(shape, view, offsets, sizes, steps);
    Value part =
        memref::SubViewOp::create(then, e.loc, cast<MemRefType>(narrow), load.getView(), offsets, sizes, steps);
    scf::YieldOp::create(then, e.loc, ValueRange{memref::CastOp::create(then, e.loc, type, part)});
    auto yield = scf::YieldOp::create(otherwise, e.loc, ValueRange{});
    Value copy = copyOf(load.getResult(), yield);
    otherwise.setInsertionPoint(yield);
    auto copyType = cast<MemRefType>(copy.getType());
    if (copyType.getRank() != 2) {
      SmallVector<OpFoldResult> zeros(extents.size(), e.builder.getIndexAttr(0));
      auto flatCopy = memref::SubViewOp::inferRankReducedResultType(shape, copyType, zeros, sizes, steps);
      copy = memref::SubViewOp::create(otherwise, e.loc, cast<MemRefType>(flatCopy), copy, zeros, sizes, steps);
    } else {
      SmallVector<OpFoldResult> zeros(2, e.builder.getIndexAttr(0));
      copy = memref::SubViewOp::create(otherwise, e.loc, copy, zeros, sizes, steps);
    }
    yield->setOperands(ValueRange{memref::CastOp::create(otherwise, e.loc, type, copy).getResult()});
    return branch.getResult(0);
  }

  // --- b ------------------------------------------------------------------------------------------------------------

  int64_t vectors() const { return llvm::divideCeil(N, lanes); }

  /// Whether b's elements lie along k in memory: it is a transpose of what they come from.
  bool isTransposed(Value tile) {
    for (;;) {
      Operation *op = tile.getDefiningOp();
      if (!op || buffers.lookup(tile))
        return false;
      if (isa<tile::TransposeOp>(op))
        return !isTransposed(op->getOperand(0));
      if (!isElementwise(op))
        return false;
      tile = op->getOperand(0);
    }
  }

  SmallVector<Value> loop(Value from, Value to, int64_t step, ValueRange carried,
                          function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    Value stride = e.constantIndex(step);
    int where = e.depth();
    e.moveTo(where);
    auto loop = scf::ForOp::create(e.builder, e.loc, from, to, stride, carried);
    if (!loop.getBody()->empty())
      loop.getBody()->back().erase();
    Operation *saved = e.levels.back().before;
    e.levels.back().before = loop;
    e.levels.push_back({loop.getBody(), nullptr});
    e.noted(loop.getInductionVar(), e.depth());
    for (Value argument : loop.getRegionIterArgs())
      e.noted(argument, e.depth());
    SmallVector<Value> yielded = body(loop.getInductionVar(), loop.getRegionIterArgs());
    e.builder.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(e.builder, e.loc, yielded);
    e.levels.pop_back();
    e.levels.back().before = saved;
    e.forgetBelow(where);
    SmallVector<Value> results;
    for (Value value : loop.getResults())
      results.push_back(e.noted(value, where));
    return results;
  }

  Ix along(Value at) { return {at, e.depthOf(at), false, 0}; }
  Ix lanesFrom(Value at, int64_t valid) { return {at, e.depthOf(at), true, valid}; }

  void packB() {
    e.moveTo(0);
    panels =
        memref::AllocaOp::create(e.builder, e.loc, MemRefType::get({(vectors() + 1) / 2, K + 1, 2 * lanes}, element),
                                 e.builder.getI64IntegerAttr(64));
    if (isTransposed(dot.getB()))
      packTransposed();
    else
      packRows();
  }

  void storePanel(Value value, int64_t vector, Value k) {
    SmallVector<Value> at = {e.constantIndex(vector / 2), k, e.constantIndex(vector % 2 * lanes)};
    value = e.asVector(value);
    e.moveTo(e.depth());
    vector::StoreOp::create(e.builder, e.loc, value, panels, at);
  }

  /// Row k of b, up to 16 vectors at a time.
  void packRows() {
    for (int64_t first = 0; first < vectors(); first += 16)
      loop(e.constantIndex(0), kBound, 1, {}, [&](Value k, ValueRange) -> SmallVector<Value> {
        for (int64_t vector = first; vector < std::min(vectors(), first + 16); ++vector) {
          Value n = e.constantIndex(vector * lanes);
          storePanel(e.at(dot.getB(), {along(k), lanesFrom(n, std::min(lanes, N - vector * lanes))}), vector, k);
        }
        return {};
      });
  }

  /// Blocks of lanes × lanes, read along k and turned.
  void packTransposed() {
    const int64_t whole = K / lanes * lanes;
    for (int64_t vector = 0; vector < vectors(); ++vector) {
      loop(e.constantIndex(0), e.constantIndex(whole), lanes, {}, [&](Value k, ValueRange) -> SmallVector<Value> {
        turnBlock(vector, k, lanes);
        return {};
      });
      if (whole < K)
        turnBlock(vector, e.constantIndex(whole), K - whole);
    }
  }

  void turnBlock(int64_t vector, Value k, int64_t valid) {
    SmallVector<Value> block;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t n = std::min(vector * lanes + lane, N - 1); // columns past N repeat the last one and are never stored
      block.push_back(e.vectorAt(dot.getB(), {lanesFrom(k, valid), along(e.constantIndex(n))}));
    }
    for (int64_t half = 1; half < lanes; half *= 2) { // exchange off-diagonal blocks of size `half`
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        low.push_back(lane & half ? lanes + (lane ^ half) : lane);
        high.push_back(lane & half ? lanes + lane : lane ^ half);
      }
      SmallVector<Value> next(block);
      for (int64_t i = 0; i < lanes; ++i)
        if (!(i & half)) {
          next[i] = e.make<vector::ShuffleOp>(block[i], block[i | half], low);
          next[i | half] = e.make<vector::ShuffleOp>(block[i], block[i | half], high);
        }
      block = next;
    }
    for (int64_t lane = 0; lane < valid; ++lane)
      storePanel(block[lane], vector, e.make<arith::AddIOp>(k, e.constantIndex(lane)));
  }

  // --- The micro-kernel
  // -----------------------------------------------------------------------------------------------

  void multiply() {
    const int64_t pairs = vectors() / 2;
    Value end = e.make<arith::CeilDivSIOp>(nBound, e.constantIndex(2 * lanes));
    end = e.make<arith::MinSIOp>(end, e.constantIndex(pairs));
    if (pairs)
      loop(e.constantIndex(0), end, 1, {}, [&](Value panel, ValueRange) -> SmallVector<Value> {
        column(panel, 2);
        return {};
      });
    if (vectors() % 2)
      column(e.constantIndex(pairs), 1);
  }

  /// All rows against one panel.
  void column(Value panel, int64_t width) {
    const int64_t whole = M / rows * rows;
    Value end = e.make<arith::MinSIOp>(mBound, e.constantIndex(whole));
    if (whole)
      loop(e.constantIndex(0), end, rows, {}, [&](Value m, ValueRange) -> SmallVector<Value> {
        block(panel, m, rows, width);
        return {};
      });
    if (whole < M)
      block(panel, e.constantIndex(whole), M - whole, width);
  }

  Value multiplyAdd(Value x, Value y, Value sum) {
    if (isa<FloatType>(element))
      return e.make<math::FmaOp>(x, y, sum);
    return e.make<arith::AddIOp>(e.make<arith::MulIOp>(x, y), sum);
  }

  void block(Value panel, Value m, int64_t height, int64_t width) {
    SmallVector<Value> row;
    for (int64_t i = 0; i < height; ++i)
      row.push_back(i ? e.make<arith::AddIOp>(m, e.constantIndex(i)) : m);
    Value zero = e.asVector(e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element))));
    SmallVector<Value> zeros(height * width, zero), starts;
    for (int64_t j = 0; j < width; ++j)
      starts.push_back(e.constantIndex(j * lanes));
    auto sums = loop(e.constantIndex(0), kBound, 1, zeros, [&](Value k, ValueRange carried) {
      SmallVector<Value> b, next(carried);
      for (int64_t j = 0; j < width; ++j)
        b.push_back(e.make<vector::LoadOp>(e.vectorOf(element), panels, ValueRange{panel, k, starts[j]}));
      for (int64_t i = 0; i < height; ++i) {
        SmallVector<Value, 2> at = {row[i], k};
        if (swapped)
          std::swap(at[0], at[1]);
        Value scalar = e.make<memref::LoadOp>(a, at);
        Value spread = e.asVector(scalar);
        for (int64_t j = 0; j < width; ++j)
          next[i * width + j] = multiplyAdd(spread, b[j], next[i * width + j]);
      }
      return next;
    });
    Value n = e.make<arith::MulIOp>(panel, e.constantIndex(2 * lanes));
    bool hasAcc = !matchPattern(dot.getAcc(), m_AnyZeroFloat()) && !matchPattern(dot.getAcc(), m_Zero());
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; ++j) {
        Value start = j ? e.make<arith::AddIOp>(n, starts[j]) : n;
        Index index = {along(row[i]), lanesFrom(start, lanes)};
        Value sum = sums[i * width + j];
        if (hasAcc) {
          Value acc = e.vectorAt(dot.getAcc(), index);
          sum = isa<FloatType>(element) ? e.make<arith::AddFOp>(acc, sum) : e.make<arith::AddIOp>(acc, sum);
        }
        e.storeBuffer(sum, result, index);
      }
  }

  tile::DotOp dot;
  Value result;
  const bool inPlace;
  const Machine machine;
  const DenseMap<Value, Value> &buffers;
  Evaluator e;
  const Type element;
  const int64_t M, N, K, lanes, rows;
  Value kBound, mBound, nBound, a, panels;
  bool swapped = false; // a is read as a[k, m]
};

} // namespace

void lowerDot(tile::DotOp dot, Value result, bool inPlace, Machine machine, const DenseMap<Value, Value> &buffers) {
  Dot(dot, result, inPlace, machine, buffers).emit();
}

} // namespace kiln::lowering::cpu

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

/// Steps of k in the micro-kernel's loop body.
static constexpr int64_t kUnroll = 4;

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
      } else if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
        auto to = tile::shapeOf(tile.getType());
        if (!differsByUnits(reshape.getSource().getType(), tile.getType()) || to[axis] == 1)
          return std::nullopt;
        int64_t skip = llvm::count_if(to.take_front(axis), [](int64_t extent) { return extent != 1; });
        tile = reshape.getSource();
        for (axis = 0; tile::shapeOf(tile.getType())[axis] == 1 || skip-- > 0;)
          ++axis;
      } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
        if (load.getPadding() == tile::Padding::Zero)
          return Edge{load, axis};
        return std::nullopt;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  Value dimOf(tile::LoadOp load, int64_t axis) {
    return e.asIndex(e.make<tile::DimOp>(e.builder.getI64Type(), load.getView(), e.builder.getI64IntegerAttr(axis)));
  }

  /// Positions of the edge's axis that can be other than zero: min(extent, dim − offset), not below 0; else `extent`.
  Value boundOf(std::optional<Edge> edge, int64_t extent) {
    if (!edge)
      return e.constantIndex(extent);
    Value left = e.make<arith::SubIOp>(dimOf(edge->load, edge->axis), e.asIndex(edge->load.getOffsets()[edge->axis]));
    return e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(left, e.constantIndex(extent)), e.constantIndex(0));
  }

  void trim() {
    kBound = e.make<arith::MinSIOp>(boundOf(edgeOf(dot.getA(), 1), K), boundOf(edgeOf(dot.getB(), 0), K));
    keeps = inPlace && buffers.lookup(dot.getAcc()) == result; // rows and columns left out keep what they hold
    mEdge = edgeOf(dot.getA(), 0).has_value();
    mBound = boundOf(edgeOf(dot.getA(), 0), M);
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
    readsView = !swapped && viewLoad(tile);
    if (readsView)
      a = readView(viewLoad(tile));
    else if (swapped && rows < lanes && lanes % rows == 0)
      packA(tile);
    else
      a = copyOf(tile, dot);
  }

  /// A column-major operand would touch another page of memory at every k: it is packed, `rows` elements for each k.
  void packA(Value tile) {
    aPanels = true;
    const int64_t count = llvm::divideCeil(M, lanes), parts = lanes / rows;
    e.moveTo(0);
    a = memref::AllocaOp::create(e.builder, e.loc, MemRefType::get({count * parts, K + 2, rows}, element),
                                 e.builder.getI64IntegerAttr(64));
    whereInside(edgeOf(dot.getA(), 0), M, [&] {
      assumeK(edgeOf(dot.getA(), 1), true);
      for (int64_t first = 0; first < count; first += 16)
        loop(e.constantIndex(0), kBound, 1, {}, [&](Value k, ValueRange) -> SmallVector<Value> {
          for (int64_t vector = first; vector < std::min(count, first + 16); ++vector) {
            Value m = e.constantIndex(vector * lanes);
            Value column = e.vectorAt(tile, {along(k), lanesFrom(m, std::min(lanes, M - vector * lanes))});
            for (int64_t part = 0; part < parts; ++part)
              storePart(column, vector * parts + part, part * rows, k);
          }
          return {};
        });
      assumeK(edgeOf(dot.getA(), 1), false);
    });
  }

  void storePart(Value column, int64_t panel, int64_t first, Value k) {
    Value slice = e.make<vector::ExtractStridedSliceOp>(column, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{rows},
                                                        ArrayRef<int64_t>{1});
    SmallVector<Value> at = {e.constantIndex(panel), k, e.constantIndex(0)};
    e.moveTo(e.depth());
    vector::StoreOp::create(e.builder, e.loc, slice, a, at);
  }

  /// Emits `body` twice where a load may end before the tile: once for the programs in which it does not.
  void whereInside(std::optional<Edge> edge, int64_t extent, function_ref<void()> body) {
    if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
      return body();
    Value whole = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, boundOf(edge, extent), e.constantIndex(extent));
    auto assumed = [&] {
      e.inside.insert({edge->load, edge->axis});
      body();
      e.inside.clear();
    };
    branch(whole, assumed, body);
  }

  tile::LoadOp viewLoad(Value tile) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!load || !load->hasAttr("cpu.view") || load.getPadding() != tile::Padding::Zero || buffers.lookup(tile) ||
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

  /// The tile in its view as a memref of rank 2, of which only positions below the bounds may be read. A copy, where
  /// the tile begins before the view or its rows lie a multiple of 4 KB apart and would compete for one set of the
  /// cache.
  Value readView(tile::LoadOp load) {
    auto view = load.getView().getType();
    auto extents = tile::shapeOf(load.getType());
    auto [strides, start] = view.getStridesAndOffset();
    SmallVector<int64_t> kept;
    Value direct = e.make<arith::ConstantOp>(e.builder.getBoolAttr(true));
    auto require = [&](arith::CmpIPredicate predicate, Value x, Value y) {
      direct = e.make<arith::AndIOp>(direct, e.make<arith::CmpIOp>(predicate, x, y));
    };
    SmallVector<OpFoldResult> offsets, sizes, steps(extents.size(), e.builder.getIndexAttr(1));
    for (auto [axis, extent] : llvm::enumerate(extents)) {
      Value offset = e.asIndex(load.getOffsets()[axis]);
      if (!isNonNegative(load.getOffsets()[axis]))
        require(arith::CmpIPredicate::sge, offset, e.constantIndex(0));
      if (extent == 1 && extents.size() != 2)
        require(arith::CmpIPredicate::slt, offset, dimOf(load, axis));
      else
        kept.push_back(axis);
      offsets.push_back(offset);
      sizes.push_back(e.builder.getIndexAttr(extent));
    }
    if (ShapedType::isDynamic(strides[kept[0]])) {
      e.moveTo(0);
      auto facts = memref::ExtractStridedMetadataOp::create(e.builder, e.loc, load.getView());
      Value apart = e.make<arith::RemUIOp>(facts.getStrides()[kept[0]],
                                           e.constantIndex(4096 * 8 / element.getIntOrFloatBitWidth()));
      require(arith::CmpIPredicate::ne, apart, e.constantIndex(0));
    }
    SmallVector<int64_t> shape = swapped ? SmallVector<int64_t>{K, M} : SmallVector<int64_t>{M, K};
    const int64_t dynamic = ShapedType::kDynamic;
    auto layout =
        StridedLayoutAttr::get(e.builder.getContext(), dynamic, {dynamic, strides[kept[1]] == 1 ? 1 : dynamic});
    auto type = MemRefType::get(shape, element, layout);
    e.moveTo(0);
    auto choice = scf::IfOp::create(e.builder, e.loc, TypeRange{type}, direct, /*withElse=*/true);
    OpBuilder then = choice.getThenBodyBuilder(), otherwise = choice.getElseBodyBuilder();
    auto narrow = [&](OpBuilder &b, Value memory, ArrayRef<OpFoldResult> from) {
      auto part =
          memref::SubViewOp::inferRankReducedResultType(shape, cast<MemRefType>(memory.getType()), from, sizes, steps);
      Value tile = memref::SubViewOp::create(b, e.loc, cast<MemRefType>(part), memory, from, sizes, steps);
      return memref::CastOp::create(b, e.loc, type, tile).getResult();
    };
    scf::YieldOp::create(then, e.loc, narrow(then, load.getView(), offsets));
    auto yield = scf::YieldOp::create(otherwise, e.loc, ValueRange{});
    Value copy = copyOf(load.getResult(), yield);
    otherwise.setInsertionPoint(yield);
    SmallVector<OpFoldResult> zeros(extents.size(), e.builder.getIndexAttr(0));
    yield->setOperands(ValueRange{narrow(otherwise, copy, zeros)});
    return choice.getResult(0);
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

  /// Emits a branch; the evaluator works inside it.
  void branch(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
    e.moveTo(e.depth());
    int where = e.depth();
    auto choice = scf::IfOp::create(e.builder, e.loc, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
    Operation *saved = e.levels.back().before;
    e.levels.back().before = choice;
    auto side = [&](Block *block, function_ref<void()> body) {
      e.levels.push_back({block, block->getTerminator()});
      body();
      e.levels.pop_back();
      e.forgetBelow(where);
    };
    side(choice.thenBlock(), then);
    if (otherwise)
      side(choice.elseBlock(), otherwise);
    e.levels.back().before = saved;
  }

  void packB() {
    const int64_t height = llvm::divideCeil(K, lanes) * lanes + 1; // whole blocks of k fit
    e.moveTo(0);
    panels =
        memref::AllocaOp::create(e.builder, e.loc, MemRefType::get({(vectors() + 1) / 2, height, 2 * lanes}, element),
                                 e.builder.getI64IntegerAttr(64));
    auto pack = [&] { isTransposed(dot.getB()) ? packTransposed() : packRows(); };
    whereInside(edgeOf(dot.getB(), 1), N, pack);
  }

  /// Positions of k below the bound lie inside an operand's view when they do not begin before it.
  void assumeK(std::optional<Edge> edge, bool holds) {
    if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
      return;
    if (holds)
      e.inside.insert({edge->load, edge->axis});
    else
      e.inside.erase({edge->load, edge->axis});
  }

  void storePanel(Value value, Value panel, Value k, Value column) {
    value = e.asVector(value);
    e.moveTo(e.depth());
    vector::StoreOp::create(e.builder, e.loc, value, panels, ValueRange{panel, k, column});
  }

  /// Row k of b, up to 16 vectors at a time.
  void packRows() {
    assumeK(edgeOf(dot.getB(), 0), true);
    for (int64_t first = 0; first < vectors(); first += 16)
      loop(e.constantIndex(0), kBound, 1, {}, [&](Value k, ValueRange) -> SmallVector<Value> {
        for (int64_t vector = first; vector < std::min(vectors(), first + 16); ++vector) {
          Value n = e.constantIndex(vector * lanes);
          Value row = e.at(dot.getB(), {along(k), lanesFrom(n, std::min(lanes, N - vector * lanes))});
          storePanel(row, e.constantIndex(vector / 2), k, e.constantIndex(vector % 2 * lanes));
        }
        return {};
      });
    assumeK(edgeOf(dot.getB(), 0), false);
  }

  /// Blocks of lanes × lanes, read along k and turned; the last block is bounded by its view.
  void packTransposed() {
    Value rest = e.make<arith::RemUIOp>(kBound, e.constantIndex(lanes));
    Value whole = e.make<arith::SubIOp>(kBound, rest);
    loop(e.constantIndex(0), e.constantIndex(vectors()), 1, {}, [&](Value vector, ValueRange) -> SmallVector<Value> {
      assumeK(edgeOf(dot.getB(), 0), true);
      loop(e.constantIndex(0), whole, lanes, {}, [&](Value k, ValueRange) -> SmallVector<Value> {
        turnBlock(vector, k, lanes);
        return {};
      });
      assumeK(edgeOf(dot.getB(), 0), false);
      Value ragged = e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, e.constantIndex(0));
      branch(ragged, [&] { turnBlock(vector, whole, K % lanes ? K % lanes : lanes); }, nullptr);
      return {};
    });
  }

  void turnBlock(Value vector, Value k, int64_t valid) {
    SmallVector<Value> block;
    Value first = e.make<arith::MulIOp>(vector, e.constantIndex(lanes));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value n = e.make<arith::AddIOp>(first, e.constantIndex(lane));
      if (N % lanes) // columns past N repeat the last one; nobody looks at them
        n = e.make<arith::MinSIOp>(n, e.constantIndex(N - 1));
      block.push_back(e.vectorAt(dot.getB(), {lanesFrom(k, valid), along(n)}));
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
    Value two = e.constantIndex(2);
    Value panel = e.make<arith::DivUIOp>(vector, two);
    Value column = e.make<arith::MulIOp>(e.make<arith::RemUIOp>(vector, two), e.constantIndex(lanes));
    for (int64_t lane = 0; lane < lanes; ++lane)
      storePanel(block[lane], panel, e.make<arith::AddIOp>(k, e.constantIndex(lane)), column);
  }

  // --- The micro-kernel ---------------------------------------------------------------------------------------------

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
    Value end = e.make<arith::MinSIOp>(keeps ? mBound : e.constantIndex(M), e.constantIndex(whole));
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

  /// Whether a is read from a view that may end before the tile does.
  bool isBounded() const { return mEdge && readsView; }

  /// Adds column k of a times row k of b to the block's sums.
  void rankOne(Value panel, ArrayRef<Value> row, Value k, ArrayRef<Value> starts, SmallVector<Value> &sums) {
    const size_t width = starts.size();
    SmallVector<Value> b;
    for (Value start : starts)
      b.push_back(e.make<vector::LoadOp>(e.vectorOf(element), panels, ValueRange{panel, k, start}));
    for (auto [i, m] : llvm::enumerate(row)) {
      SmallVector<Value, 3> at = {m, k};
      if (aPanels)
        at = {e.make<arith::DivUIOp>(row[0], e.constantIndex(rows)), k, e.constantIndex(i)};
      else if (swapped)
        std::swap(at[0], at[1]);
      Value scalar = e.asVector(e.make<memref::LoadOp>(a, at));
      for (size_t j = 0; j < width; ++j)
        sums[i * width + j] = multiplyAdd(scalar, b[j], sums[i * width + j]);
    }
  }

  void block(Value panel, Value m, int64_t height, int64_t width) {
    SmallVector<Value> row, source; // rows past the bound read the last one before it, and their sums are dropped
    Value last = e.make<arith::MaxSIOp>(e.make<arith::SubIOp>(mBound, e.constantIndex(1)), e.constantIndex(0));
    for (int64_t i = 0; i < height; ++i) {
      row.push_back(i ? e.make<arith::AddIOp>(m, e.constantIndex(i)) : m);
      source.push_back(isBounded() ? e.make<arith::MinSIOp>(row.back(), last) : row.back());
    }
    Value zero = e.asVector(e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element))));
    SmallVector<Value> zeros(height * width, zero), starts;
    for (int64_t j = 0; j < width; ++j)
      starts.push_back(e.constantIndex(j * lanes));
    // Four steps of k share the addresses of a's rows; what is left of K takes single steps.
    Value whole = e.make<arith::SubIOp>(kBound, e.make<arith::RemUIOp>(kBound, e.constantIndex(kUnroll)));
    auto steps = [&](int64_t count) {
      return [&, count](Value k, ValueRange carried) {
        SmallVector<Value> next(carried);
        for (int64_t step = 0; step < count; ++step)
          rankOne(panel, source, step ? e.make<arith::AddIOp>(k, e.constantIndex(step)) : k, starts, next);
        return next;
      };
    };
    auto sums = loop(e.constantIndex(0), whole, kUnroll, zeros, steps(kUnroll));
    sums = loop(whole, kBound, 1, sums, steps(1));
    Value n = e.make<arith::MulIOp>(panel, e.constantIndex(2 * lanes));
    bool hasAcc = !matchPattern(dot.getAcc(), m_AnyZeroFloat()) && !matchPattern(dot.getAcc(), m_Zero());
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; ++j) {
        Value start = j ? e.make<arith::AddIOp>(n, starts[j]) : n;
        Index index = {along(row[i]), lanesFrom(start, lanes)};
        Value sum = sums[i * width + j];
        if (isBounded()) {
          Value counts = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, row[i], mBound);
          sum = e.make<arith::SelectOp>(counts, sum, zero);
        }
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
  bool aPanels = false; // a is packed: [m / rows][k][m % rows]
  bool mEdge = false, readsView = false;
  bool keeps = false; // rows and columns past the bounds stay as they are
};

} // namespace

void lowerDot(tile::DotOp dot, Value result, bool inPlace, Machine machine, const DenseMap<Value, Value> &buffers) {
  Dot(dot, result, inPlace, machine, buffers).emit();
}

} // namespace kiln::lowering::cpu

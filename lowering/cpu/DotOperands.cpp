// Where the operands of a matrix product lie, and the code that packs them.

#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/Loops.h"
#include "lowering/cpu/Prefetch.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// Size of a product from which on b is prefetched: K · N · (M + N).
static constexpr int64_t prefetchFrom = 1 << 22;

DotOperands::DotOperands(tile::DotOp dot, Evaluator &e, const DenseMap<Value, Value> &buffers, int64_t rows)
    : dot(dot), e(e), buffers(buffers), element(getElementTypeOrSelf(dot.getType())),
      M(tile::shapeOf(dot.getType())[0]), N(tile::shapeOf(dot.getType())[1]), K(tile::shapeOf(dot.getA().getType())[1]),
      lanes(e.machine.lanes()), rows(rows), turned(dot->hasAttr("cpu.right_turned")) {}

DotOperands::DotOperands(tile::DotOp dot, Evaluator &before, const DenseMap<Value, Value> &buffers, int64_t rows,
                         Value panels)
    : DotOperands(dot, before, buffers, rows) {
  this->panels = panels;
  packedBefore = true;
  kBound = boundOf(edgeOf(dot.getB(), 0), K);
  nBound = boundOf(edgeOf(dot.getB(), 1), N);
}

void DotOperands::pack() {
  placeA();
  auto loops = dot->getAttrOfType<IntegerAttr>("cpu.right_before");
  if (loops)
    packBefore(loops.getInt());
  else
    panels = makePanels(e, 1);
}

// --- How far K, M and N really go ---------------------------------------------------------------------------------

/// The load behind an operand's dimension `axis`, through operations that only move elements, if what lies outside it
/// is zero.
std::optional<DotOperands::Edge> DotOperands::edgeOf(Value tile, int64_t axis) {
  while (Operation *op = tile.getDefiningOp()) {
    if (auto move = dyn_cast<tile::MoveOp>(op)) {
      auto inner = axisBelow(move, axis);
      if (!inner)
        return std::nullopt;
      axis = *inner;
      tile = move.getMoved();
    } else if (isa<arith::ExtFOp, arith::ExtSIOp>(op)) {
      tile = op->getOperand(0);
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

/// The extent of `view` along `axis`.
static Value dimOf(Evaluator &e, Value view, int64_t axis) {
  return e.asIndex(e.make<tile::DimOp>(e.builder.getI64Type(), view, e.builder.getI64IntegerAttr(axis)));
}

Value DotOperands::boundIn(Value view, int64_t axis, Value offset, int64_t extent) {
  auto type = cast<MemRefType>(view.getType());
  APInt begin;
  if (!type.isDynamicDim(axis) && matchPattern(offset, m_ConstantInt(&begin))) {
    const int64_t start = std::max(begin.getSExtValue(), -extent); // before that nothing changes, and nothing overflows
    return e.constantIndex(std::clamp<int64_t>(type.getDimSize(axis) - start, 0, extent));
  }
  Value left = e.make<arith::SubIOp>(dimOf(e, view, axis), e.asIndex(offset));
  return e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(left, e.constantIndex(extent)), e.constantIndex(0));
}

Value DotOperands::boundOf(std::optional<Edge> edge, int64_t extent) {
  if (!edge)
    return e.constantIndex(extent);
  return boundIn(edge->load.getView(), edge->axis, edge->load.getOffsets()[edge->axis], extent);
}

void DotOperands::bound() {
  kBound = e.least(boundOf(edgeOf(dot.getA(), 1), K), boundOf(edgeOf(dot.getB(), 0), K));
  mEdge = edgeOf(dot.getA(), 0).has_value();
  mBound = boundOf(edgeOf(dot.getA(), 0), M);
  nBound = boundOf(edgeOf(dot.getB(), 1), N);
}

// --- a ------------------------------------------------------------------------------------------------------------

void DotOperands::placeA() {
  Value tile = dot.getA();
  while (auto transpose = tile.getDefiningOp<tile::TransposeOp>()) { // of rank 2: it swaps
    tile = transpose.getSource();
    swapped = !swapped;
  }
  StringRef place = dot->getAttrOfType<StringAttr>("cpu.left").getValue();
  readsView = place == "view";
  if (readsView) {
    auto reshape = tile.getDefiningOp<tile::ReshapeOp>();
    a = readView((reshape ? reshape.getSource() : tile).getDefiningOp<tile::LoadOp>());
  } else if (place == "placed") {
    a = buffers.lookup(tile);
  } else if (place == "panels") {
    packA(tile);
  } else {
    a = copyOf(tile, dot);
  }
}

/// A column-major operand would touch another page of memory at every k: it is packed, `rows` elements for each k.
void DotOperands::packA(Value tile) {
  aPanels = true;
  const int64_t count = llvm::divideCeil(M, lanes), parts = lanes / rows;
  e.moveTo(0);
  a = memref::AllocaOp::create(e.builder, e.loc, MemRefType::get({count * parts, K + 2, rows}, element),
                               e.builder.getI64IntegerAttr(64));
  whereInside(edgeOf(dot.getA(), 0), M, [&] {
    assumeK(edgeOf(dot.getA(), 1), true);
    for (int64_t first = 0; first < count; first += 16)
      e.loop(e.constantIndex(0), kBound, 1, [&](Ix k) {
        for (int64_t vector = first; vector < std::min(count, first + 16); ++vector) {
          Value m = e.constantIndex(vector * lanes);
          Value column = e.vectorAt(tile, {k, e.lanesFrom(m, std::min(lanes, M - vector * lanes))});
          for (int64_t part = 0; part < parts; ++part)
            storePart(column, vector * parts + part, part * rows, k.at);
        }
      });
    assumeK(edgeOf(dot.getA(), 1), false);
  });
}

void DotOperands::storePart(Value column, int64_t panel, int64_t first, Value k) {
  Value slice = e.make<vector::ExtractStridedSliceOp>(column, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{rows},
                                                      ArrayRef<int64_t>{1});
  SmallVector<Value> at = {e.constantIndex(panel), k, e.constantIndex(0)};
  e.moveTo(e.depth());
  vector::StoreOp::create(e.builder, e.loc, slice, a, at);
}

/// Emits `body` twice where a load may end before the tile: once for the programs in which it does not.
void DotOperands::whereInside(std::optional<Edge> edge, int64_t extent, function_ref<void()> body) {
  if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
    return body();
  Value whole = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, boundOf(edge, extent), e.constantIndex(extent));
  auto assumed = [&] {
    e.inside.insert({edge->load, edge->axis});
    body();
    e.inside.clear();
  };
  e.branch(whole, assumed, body);
}

Value DotOperands::copyOf(Value tile, Operation *before) {
  OpBuilder b(before);
  Value copy = allocateBuffer(b, dot.getLoc(), tile.getType(), e.machine, e.machine.lanes());
  Root root{Root::Kind::place, before, tile, copy, -1};
  emitLoops(root, before, e.machine, buffers);
  return copy;
}

/// The tile in its view as a memref of rank 2 (M, K), of which only positions below the bounds may be read. A copy,
/// where the tile begins before the view or its rows lie a multiple of 4 KB apart, give or take a line, and would
/// compete for one set of the cache.
Value DotOperands::readView(tile::LoadOp load) {
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
      require(arith::CmpIPredicate::slt, offset, dimOf(e, load.getView(), axis));
    else
      kept.push_back(axis);
    offsets.push_back(offset);
    sizes.push_back(e.builder.getIndexAttr(extent));
  }
  if (ShapedType::isDynamic(strides[kept[0]])) {
    e.moveTo(0);
    auto facts = memref::ExtractStridedMetadataOp::create(e.builder, e.loc, load.getView());
    const int64_t bytes = element.getIntOrFloatBitWidth() / 8, page = 4096 / bytes, line = 64 / bytes;
    Value near = e.make<arith::AddIOp>(facts.getStrides()[kept[0]], e.constantIndex(line));
    Value apart = e.make<arith::RemUIOp>(near, e.constantIndex(page));
    require(arith::CmpIPredicate::ugt, apart, e.constantIndex(2 * line));
  }
  SmallVector<int64_t> shape = {M, K};
  const int64_t dynamic = ShapedType::kDynamic;
  auto layout = StridedLayoutAttr::get(e.builder.getContext(), dynamic, {dynamic, strides[kept[1]] == 1 ? 1 : dynamic});
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

Value DotOperands::makePanels(Evaluator &at, int64_t count) {
  const int64_t height = llvm::divideCeil(K, lanes) * lanes; // whole blocks of k fit
  at.moveTo(0);
  return memref::AllocaOp::create(at.builder, at.loc, MemRefType::get({count, height, 2 * lanes}, element),
                                  at.builder.getI64IntegerAttr(64));
}

void DotOperands::packBefore(int64_t loops) {
  packedBefore = true;
  Operation *outermost = dot;
  for (int64_t i = 0; i < loops; ++i)
    outermost = outermost->getParentOp();
  const int64_t wide = 2 * lanes, count = llvm::divideCeil(N, wide);
  Evaluator outside(dot.getLoc(), e.machine, buffers);
  outside.levels.push_back({outermost->getBlock(), outermost});
  panels = makePanels(outside, count);
  DotOperands before(dot, outside, buffers, rows, panels);
  forPanels(outside, N, outside.constantIndex(N), [&](Value n, ArrayRef<int64_t> valid) {
    before.slot = outside.make<arith::DivUIOp>(n, outside.constantIndex(wide));
    before.packPanel(n, valid);
  });
}

void forPanels(Evaluator &e, int64_t N, Value end, function_ref<void(Value, ArrayRef<int64_t>)> body) {
  const int64_t lanes = e.machine.lanes(), wide = 2 * lanes, whole = N / wide * wide;
  if (whole)
    e.loop(e.constantIndex(0), e.least(end, e.constantIndex(whole)), wide, [&](Ix n) { body(n.at, {lanes, lanes}); });
  SmallVector<int64_t> rest;
  for (int64_t left = N - whole; left > 0; left -= lanes)
    rest.push_back(std::min(left, lanes));
  if (!rest.empty())
    body(e.constantIndex(whole), rest);
}

void DotOperands::turnTo(Value n, ArrayRef<int64_t> valid) {
  slot = packedBefore ? e.make<arith::DivUIOp>(n, e.constantIndex(2 * lanes)) : e.constantIndex(0);
  if (!packedBefore)
    packPanel(n, valid);
}

void DotOperands::packPanel(Value n, ArrayRef<int64_t> valid) {
  if (turned)
    return packTransposed(n, valid.size());
  const bool masksAreFree = e.machine.vectorBits == 512;
  whereInside(masksAreFree ? std::nullopt : edgeOf(dot.getB(), 1), N, [&] { packRows(n, valid); });
}

/// Positions of k below the bound lie inside an operand's view when they do not begin before it.
void DotOperands::assumeK(std::optional<Edge> edge, bool holds) {
  if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
    return;
  if (holds)
    e.inside.insert({edge->load, edge->axis});
  else
    e.inside.erase({edge->load, edge->axis});
}

/// To row k of the panel, from `column` of it on.
void DotOperands::storePanel(Value value, Value k, Value column) {
  value = e.asVector(value);
  SmallVector<Value> at = {slot, k, column};
  e.moveTo(e.depth());
  vector::StoreOp::create(e.builder, e.loc, value, panels, at);
}

/// One row of b's columns for each k.
void DotOperands::packRows(Value n, ArrayRef<int64_t> valid) {
  assumeK(edgeOf(dot.getB(), 0), true);
  e.unrolledLoop(e.constantIndex(0), kBound, 4, [&](Ix k) {
    for (size_t vector = 0; vector < valid.size(); ++vector) {
      Value column = e.constantIndex(vector * lanes), first = e.make<arith::AddIOp>(n, column);
      storePanel(e.at(dot.getB(), {k, e.lanesFrom(first, valid[vector])}), k.at, column);
    }
  });
  assumeK(edgeOf(dot.getB(), 0), false);
}

/// Blocks of lanes × lanes, read along k and turned.
void DotOperands::packTransposed(Value n, int64_t vectors) {
  auto edge = edgeOf(dot.getB(), 1);
  const bool clamps = edge && isNonNegative(edge->load.getOffsets()[edge->axis]);
  Value bound = clamps ? nBound : e.constantIndex(N), whole = e.constantIndex(K / lanes * lanes);
  e.loop(e.constantIndex(0), e.constantIndex(vectors * lanes), lanes, [&](Ix column) {
    Value first = e.make<arith::AddIOp>(n, column.at);
    auto blocks = [&] {
      if (clamps)
        e.inside.insert({edge->load, edge->axis});
      e.loop(e.constantIndex(0), e.least(kBound, whole), lanes,
             [&](Ix k) { turnBlock(first, column.at, bound, k.at, lanes); });
      if (K % lanes)
        turnBlock(first, column.at, bound, whole, K % lanes);
      e.inside.clear();
    };
    auto zeros = [&] {
      Value zero = e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element)));
      e.loop(e.constantIndex(0), kBound, 1, [&](Ix k) { storePanel(zero, k.at, column.at); });
    };
    if (clamps)
      e.branch(e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, first, bound), blocks, zeros);
    else
      blocks();
  });
}

/// The block of b at row k, of which `valid` rows lie in the tile, and column n, to `column` of the panel. Columns from
/// `bound` on are zero, or past the tile's last one, at which nobody looks: in their place the last one is read.
void DotOperands::turnBlock(Value n, Value column, Value bound, Value k, int64_t valid) {
  SmallVector<Value> block;
  Value last = e.make<arith::SubIOp>(bound, e.constantIndex(1));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = e.make<arith::MinSIOp>(e.make<arith::AddIOp>(n, e.constantIndex(lane)), last);
    block.push_back(e.vectorAt(dot.getB(), {e.lanesFrom(k, valid), e.along(at)}));
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
  Value inside = e.lanesBelow(e.make<arith::SubIOp>(bound, n));
  Value zero = e.asVector(e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element))));
  for (int64_t lane = 0; lane < lanes; ++lane)
    storePanel(e.make<arith::SelectOp>(inside, block[lane], zero), e.make<arith::AddIOp>(k, e.constantIndex(lane)),
               column);
}

bool DotOperands::prefetches() {
  auto alongK = edgeOf(dot.getB(), 0), alongN = edgeOf(dot.getB(), 1);
  return alongK && alongN && alongK->load == alongN->load && !turned && !packedBefore &&
         K * N * (M + N) >= prefetchFrom;
}

void DotOperands::prefetchPanel(Value n, Value m, Value k, int64_t step) {
  if (!prefetches())
    return;
  auto alongK = edgeOf(dot.getB(), 0), alongN = edgeOf(dot.getB(), 1);
  const int64_t share = llvm::divideCeil(K, llvm::divideCeil(M, rows));
  Value block = e.make<arith::DivUIOp>(m, e.constantIndex(rows));
  Value first = e.make<arith::MulIOp>(block, e.constantIndex(share));
  Index index(alongK->load.getOffsets().size(), e.fixed(0));
  for (Value number : rowsAt(e, share, k, K, step))
    for (int64_t vector = 0; vector < 2; ++vector) {
      index[alongK->axis] = e.along(e.make<arith::AddIOp>(first, number));
      index[alongN->axis] = e.along(e.make<arith::AddIOp>(n, requestFor(e, vector)));
      e.prefetch(alongK->load, alongK->load.getOffsets(), index);
    }
}

// --- What the micro-kernel reads ----------------------------------------------------------------------------------

Value DotOperands::readA(ArrayRef<Value> row, size_t i, Value k) {
  SmallVector<Value, 3> at = {row[i], k};
  if (aPanels)
    at = {e.make<arith::DivUIOp>(row[0], e.constantIndex(rows)), k, e.constantIndex(i)};
  else if (swapped)
    std::swap(at[0], at[1]);
  return e.make<memref::LoadOp>(a, at);
}

Value DotOperands::readB(Value k, int64_t vector) {
  SmallVector<Value> at = {slot, k, e.constantIndex(vector * lanes)};
  return e.make<vector::LoadOp>(e.vectorOf(element), panels, at);
}

} // namespace kiln::lowering::cpu

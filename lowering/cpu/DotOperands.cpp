// Addresses of a matrix product's operands, and the code that packs them.

#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/LowerTiles.h"

using namespace mlir;

namespace kiln::lowering::cpu {

DotOperands::DotOperands(tile::DotOp dot, Evaluator &e, const DenseMap<Value, Value> &buffers, int64_t rows)
    : dot(dot), e(e), buffers(buffers), unit(unitOf(dot)), group(groupOf(unit)),
      element(getElementTypeOrSelf(dot.getA().getType())), word(group == 1 ? element : e.builder.getI32Type()),
      leading(tile::shapeOf(dot.getType()).drop_back(2)), M(tile::shapeOf(dot.getType())[leading.size()]),
      N(tile::shapeOf(dot.getType()).back()), K(tile::shapeOf(dot.getA().getType()).back()), lanes(e.machine.lanes()),
      rows(rows), panelRows(group == 1 ? rows : e.machine.rows()), isTransposed(dot->hasAttr("cpu.right_transposed")) {}

DotOperands::DotOperands(tile::DotOp dot, Evaluator &before, const DenseMap<Value, Value> &buffers, int64_t rows,
                         Value panels)
    : DotOperands(dot, before, buffers, rows) {
  this->panels = panels;
  packedBefore = true;
  kBound = emitBound(findEdge(dot.getB(), 0), K);
  steps = stepsBelow(kBound);
  nBound = emitBound(findEdge(dot.getB(), 1), N);
}

void DotOperands::forMatrices(function_ref<void()> body) {
  if (pair.size() == leading.size())
    return body();
  const int64_t extent = leading[pair.size()];
  const auto each = [&](Ix position) {
    pair.push_back(position);
    forMatrices(body);
    pair.pop_back();
  };
  if (extent == 1)
    each(e.fixed(0));
  else
    e.loop(e.constantIndex(0), e.constantIndex(extent), 1, each);
}

Index DotOperands::in(Ix row, Ix column) const {
  Index index(pair);
  index.append({row, column});
  return index;
}

Value DotOperands::number() {
  Value number = e.constantIndex(0);
  for (auto [extent, position] : llvm::zip_equal(leading, pair))
    if (extent != 1)
      number = e.make<arith::AddIOp>(e.make<arith::MulIOp>(number, e.constantIndex(extent)), position.at);
  return number;
}

/// The indices of a row and column of a, in elements or in words.
SmallVector<Value> DotOperands::inLeft(Value row, Value column) const {
  SmallVector<Value> at;
  const bool isOne = hasTiles(unit) && swapped; // one matrix in memory at a time
  for (auto [extent, position] : llvm::zip_equal(leading, pair))
    if (!isOne && (extent != 1 || !aDropsUnits))
      at.push_back(position.at);
  at.append({row, column});
  return at;
}

void DotOperands::pack() {
  if (hasTiles(unit) && swapped) {
    transposeBlocks(left);
    fillBlocks();
  } else if (aPanels) {
    packA(left);
  }
  auto loops = dot->getAttrOfType<IntegerAttr>("cpu.right_before");
  if (loops)
    packBefore(loops.getInt());
  else
    panels = makePanels(e, packsAhead() ? 2 : 1);
}

// --- Bounds of K, M and N in the views ----------------------------------------------------------------------------

/// The load, and its dimension, that becomes dimension `axis` of a matrix through moves and widening casts. None unless
/// the load's padding is zero.
std::optional<DotOperands::Edge> DotOperands::findEdge(Value tile, int64_t axis) {
  axis += static_cast<int64_t>(leading.size());
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

Value DotOperands::boundIn(Value view, int64_t axis, Value offset, int64_t extent) {
  auto type = cast<MemRefType>(view.getType());
  APInt begin;
  if (!type.isDynamicDim(axis) && matchPattern(offset, m_ConstantInt(&begin))) {
    // The limit avoids overflow; smaller positions have an equal result.
    const int64_t start = std::max(begin.getSExtValue(), -extent);
    return e.constantIndex(std::clamp<int64_t>(type.getDimSize(axis) - start, 0, extent));
  }
  Value left = e.make<arith::SubIOp>(e.extentOf(view, axis), e.asIndex(offset));
  return e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(left, e.constantIndex(extent)), e.constantIndex(0));
}

Value DotOperands::emitBound(std::optional<Edge> edge, int64_t extent) {
  if (!edge)
    return e.constantIndex(extent);
  return boundIn(edge->load.getView(), edge->axis, edge->load.getOffsets()[edge->axis], extent);
}

Value DotOperands::stepsBelow(Value bound) {
  if (group == 1)
    return bound;
  APInt constant;
  if (matchPattern(bound, m_ConstantInt(&constant)))
    return e.constantIndex(llvm::divideCeil(constant.getSExtValue(), group));
  return e.make<arith::DivUIOp>(e.make<arith::AddIOp>(bound, e.constantIndex(group - 1)), e.constantIndex(group));
}

Value DotOperands::stepAt(Value k) { return group == 1 ? k : e.make<arith::DivUIOp>(k, e.constantIndex(group)); }

void DotOperands::bound() {
  kBound = e.least(emitBound(findEdge(dot.getA(), 1), K), emitBound(findEdge(dot.getB(), 0), K));
  steps = stepsBelow(kBound);
  mEdge = findEdge(dot.getA(), 0).has_value();
  mBound = emitBound(findEdge(dot.getA(), 0), M);
  nBound = emitBound(findEdge(dot.getB(), 1), N);
}

// --- a ------------------------------------------------------------------------------------------------------------

void DotOperands::place() {
  Value tile = dot.getA();
  for (auto transpose = tile.getDefiningOp<tile::TransposeOp>(); transpose && swapsMatrix(transpose);
       transpose = tile.getDefiningOp<tile::TransposeOp>()) {
    tile = transpose.getSource();
    swapped = !swapped;
  }
  left = tile;
  StringRef place = dot->getAttrOfType<StringAttr>("cpu.left").getValue();
  readsView = place == "view";
  if (readsView) {
    auto reshape = tile.getDefiningOp<tile::ReshapeOp>();
    a = readView((reshape ? reshape.getSource() : tile).getDefiningOp<tile::LoadOp>());
  } else if (place == "scratch") {
    a = buffers.lookup(tile);
  } else if (hasTiles(unit)) {
    copyBlocks(tile);
  } else if (place == "panels") {
    aPanels = true;
  } else {
    a = copyOf(tile, dot);
  }
}

/// Packs a column-major operand, `panelRows` elements for each step. Unpacked, it would access another page at every k.
/// If a step is a word, the word's elements would not be adjacent either.
void DotOperands::packA(Value tile) {
  const int64_t count = llvm::divideCeil(M, lanes), parts = lanes / panelRows;
  e.moveTo(0);
  a = memref::AllocaOp::create(e.builder, e.loc, MemRefType::get({count * parts, depth() + 2, panelRows}, word),
                               e.builder.getI64IntegerAttr(64));
  whereInside(findEdge(dot.getA(), 0), M, [&] {
    for (int64_t first = 0; first < count; first += 16)
      forSteps(findEdge(dot.getA(), 1), 1, [&](Ix step) {
        for (int64_t vector = first; vector < std::min(count, first + 16); ++vector) {
          Ix m = e.lanesFrom(e.constantIndex(vector * lanes), std::min(lanes, M - vector * lanes));
          Value column = wordsAcross([&](Ix k) { return e.vectorAt(tile, in(k, m)); }, step);
          for (int64_t part = 0; part < parts; ++part)
            storePart(column, vector * parts + part, part * panelRows, step.at);
        }
      });
  });
}

void DotOperands::storePart(Value column, int64_t panel, int64_t first, Value step) {
  Value slice = e.make<vector::ShuffleOp>(column, column, llvm::to_vector(llvm::seq(first, first + panelRows)));
  SmallVector<Value> at = {e.constantIndex(panel), step, e.constantIndex(0)};
  e.moveTo(e.depth());
  vector::StoreOp::create(e.builder, e.loc, slice, a, at);
}

/// Emits `body`. If a load may extend past its view, emits it in two versions: one for programs whose load is inside.
void DotOperands::whereInside(std::optional<Edge> edge, int64_t extent, function_ref<void()> body) {
  if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
    return body();
  Value whole = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, emitBound(edge, extent), e.constantIndex(extent));
  auto assumed = [&] {
    e.inside[{edge->load, edge->axis}] = e.depth();
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

/// The tile in its view as a memref (…, M, K). Only positions below the bounds may be read. It is a copy if the tile
/// begins outside the view, or if one of its matrices is outside. It is also a copy if a word or a block of tiles
/// crosses the view's end. If the row stride is within a cache line of a multiple of 4 KB, rows would compete for one
/// set of the cache, so it is a copy too.
Value DotOperands::readView(tile::LoadOp load) {
  auto view = load.getView().getType();
  auto extents = tile::shapeOf(load.getType());
  auto [strides, start] = view.getStridesAndOffset();
  aDropsUnits = extents != tile::shapeOf(dot.getA().getType());
  SmallVector<int64_t> kept, shape;
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (!aDropsUnits || extent != 1) {
      kept.push_back(axis);
      shape.push_back(extent);
    }
  const ArrayRef<int64_t> matrix = ArrayRef(kept).take_back(2);
  Value direct = e.make<arith::ConstantOp>(e.builder.getBoolAttr(true));
  auto require = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    direct = e.make<arith::AndIOp>(direct, e.make<arith::CmpIOp>(predicate, x, y));
  };
  SmallVector<OpFoldResult> offsets, sizes, steps(extents.size(), e.builder.getIndexAttr(1));
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    Value offset = e.asIndex(load.getOffsets()[axis]);
    if (!isNonNegative(load.getOffsets()[axis]))
      require(arith::CmpIPredicate::sge, offset, e.constantIndex(0));
    if (extent == 1 && aDropsUnits)
      require(arith::CmpIPredicate::slt, offset, e.extentOf(load.getView(), axis));
    else if (!llvm::is_contained(matrix, axis))
      require(arith::CmpIPredicate::eq, boundIn(load.getView(), axis, load.getOffsets()[axis], extent),
              e.constantIndex(extent));
    offsets.push_back(offset);
    sizes.push_back(e.builder.getIndexAttr(extent));
  }
  if (ShapedType::isDynamic(strides[matrix[0]])) {
    e.moveTo(0);
    auto facts = memref::ExtractStridedMetadataOp::create(e.builder, e.loc, load.getView());
    const int64_t bytes = element.getIntOrFloatBitWidth() / 8, page = 4096 / bytes, line = 64 / bytes;
    Value near = e.make<arith::AddIOp>(facts.getStrides()[matrix[0]], e.constantIndex(line));
    Value apart = e.make<arith::RemUIOp>(near, e.constantIndex(page));
    require(arith::CmpIPredicate::ugt, apart, e.constantIndex(2 * line));
  }
  if (auto edge = findEdge(dot.getA(), 1); edge && group > 1) { // words, or rows of tiles, must be completely inside
    const int64_t whole = hasTiles(unit) ? tileWords * group : group;
    require(arith::CmpIPredicate::eq, e.make<arith::RemUIOp>(emitBound(edge, K), e.constantIndex(whole)),
            e.constantIndex(0));
  }
  if (auto edge = findEdge(dot.getA(), 0)) // one row is always read; with AMX tiles, all rows of a are
    require(arith::CmpIPredicate::sge, emitBound(edge, M), e.constantIndex(hasTiles(unit) ? M : 1));
  const int64_t dynamic = ShapedType::kDynamic;
  SmallVector<int64_t> inMemory(kept.size(), dynamic);
  if (strides[matrix[1]] == 1)
    inMemory.back() = 1;
  auto layout = StridedLayoutAttr::get(e.builder.getContext(), dynamic, inMemory);
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

// --- Words --------------------------------------------------------------------------------------------------------

/// Whether a bound along k is known to be a multiple of a step.
bool DotOperands::isWhole(Value bound) const {
  APInt constant;
  return group == 1 || (matchPattern(bound, m_ConstantInt(&constant)) && constant.getSExtValue() % group == 0);
}

/// Emits `body` for each step, first for those completely below kBound, which need no check of the edge.
void DotOperands::forSteps(std::optional<Edge> edge, int64_t unroll, function_ref<void(Ix step)> body) {
  const bool whole = isWhole(kBound);
  Value end = whole ? steps : stepAt(kBound);
  assumeK(edge, true);
  e.unrolledLoop(e.constantIndex(0), end, unroll, body);
  assumeK(edge, false);
  if (!whole)
    forPartialStep(end, body);
}

/// Emits `body` for the partial step after the complete ones, if there is one.
void DotOperands::forPartialStep(Value last, function_ref<void(Ix step)> body) {
  e.branch(e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, last, steps), [&] { body(e.along(last)); }, nullptr);
}

/// Consecutive `elements` as words.
Value DotOperands::asWords(Value elements) {
  const int64_t count = cast<VectorType>(elements.getType()).getNumElements() / group;
  return group == 1 ? elements : e.make<vector::BitCastOp>(VectorType::get({count}, word), elements);
}

/// A step of several columns; `row` returns the elements of all columns at a position along k.
Value DotOperands::wordsAcross(function_ref<Value(Ix k)> row, Ix step) {
  if (group == 1)
    return row(step);
  SmallVector<Value> rows;
  Value first = e.make<arith::MulIOp>(step.at, e.constantIndex(group));
  for (int64_t i = 0; i < group; ++i)
    rows.push_back(e.asVector(row(e.along(i ? e.make<arith::AddIOp>(first, e.constantIndex(i)) : first))));
  for (; rows.size() > 1; rows.resize(rows.size() / 2)) // of four rows, interleave the even and the odd ones first
    for (size_t i = 0, half = rows.size() / 2; i < half; ++i)
      rows[i] = e.make<vector::InterleaveOp>(rows[i], rows[i + half]);
  return asWords(rows[0]);
}

// --- Operands of the micro-kernel ---------------------------------------------------------------------------------

Value DotOperands::readA(ArrayRef<Value> row, size_t i, Value step) {
  if (group > 1 && !aPanels) {
    SmallVector<Value> at = inLeft(row[i], e.make<arith::MulIOp>(step, e.constantIndex(group)));
    return e.make<vector::ExtractOp>(asWords(e.make<vector::LoadOp>(VectorType::get({group}, element), a, at)), 0);
  }
  SmallVector<Value> at;
  if (aPanels)
    at = {e.make<arith::DivUIOp>(row[0], e.constantIndex(panelRows)), step, e.constantIndex(i)};
  else
    at = swapped ? inLeft(step, row[i]) : inLeft(row[i], step);
  return e.make<memref::LoadOp>(a, at);
}

Value DotOperands::readB(Value step, int64_t vector) {
  SmallVector<Value> at = {slot, step, e.constantIndex(vector * lanes)};
  return e.make<vector::LoadOp>(e.vectorOf(word), panels, at);
}

} // namespace kiln::lowering::cpu

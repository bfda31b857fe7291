// Packs panels of a matrix product's right operand.

#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/Prefetch.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// b is prefetched for products of at least this size, K · N · (M + N).
static constexpr int64_t prefetchFrom = 1 << 22;

/// Two vectors as one of twice the length.
static Value joined(Evaluator &e, Value low, Value high) {
  auto indices = llvm::to_vector(llvm::seq<int64_t>(0, 2 * cast<VectorType>(low.getType()).getNumElements()));
  return e.make<vector::ShuffleOp>(low, high, indices);
}

Value DotOperands::makePanels(Evaluator &at, int64_t count) {
  const int64_t height = llvm::divideCeil(depth(), lanes) * lanes; // complete blocks of k fit
  at.moveTo(0);
  return memref::AllocaOp::create(at.builder, at.loc, MemRefType::get({count, height, 2 * lanes}, word),
                                  at.builder.getI64IntegerAttr(64));
}

void DotOperands::packBefore(int64_t loops) {
  packedBefore = true;
  Operation *outermost = dot;
  for (int64_t i = 0; i < loops; ++i)
    outermost = outermost->getParentOp();
  const int64_t count = ShapedType::getNumElements(leading) * llvm::divideCeil(N, 2 * lanes);
  Evaluator outside(dot.getLoc(), e.machine, buffers);
  outside.levels.push_back({outermost->getBlock(), outermost});
  panels = makePanels(outside, count);
  DotOperands before(dot, outside, buffers, rows, panels);
  before.forMatrices([&] { before.packAll(); });
}

/// Packs all panels, each in its slot. The blocks of a transposed operand share one loop, because a block is much code.
void DotOperands::packAll() {
  Value wide = e.constantIndex(2 * lanes);
  if (isTransposed)
    packTransposed(llvm::divideCeil(N, lanes), [&](Value column) {
      slot = slotOf(column);
      return std::pair(column, e.make<arith::RemUIOp>(column, wide));
    });
  if (isTransposed && !hasTiles(unit))
    return;
  forPanels(e, N, e.constantIndex(N), [&](Value n, ArrayRef<int64_t> valid) {
    slot = slotOf(n);
    if (isTransposed)
      fillTiles();
    else
      packPanel(n, valid);
  });
}

void forPanels(Evaluator &e, int64_t N, Value end, function_ref<void(Value, ArrayRef<int64_t>)> body) {
  forPanels(e, N, end, {}, [&](Value n, ArrayRef<int64_t> valid, ValueRange) {
    body(n, valid);
    return SmallVector<Value>();
  });
}

void forPanels(Evaluator &e, int64_t N, Value end, ValueRange carried,
               function_ref<SmallVector<Value>(Value, ArrayRef<int64_t>, ValueRange)> body) {
  const int64_t lanes = e.machine.lanes(), wide = 2 * lanes, whole = N / wide * wide;
  SmallVector<Value> values(carried);
  if (whole)
    values = e.loop(e.constantIndex(0), e.least(end, e.constantIndex(whole)), wide, values,
                    [&](Ix n, ValueRange last) { return body(n.at, {lanes, lanes}, last); });
  SmallVector<int64_t> rest;
  for (int64_t left = N - whole; left > 0; left -= lanes)
    rest.push_back(std::min(left, lanes));
  if (!rest.empty())
    body(e.constantIndex(whole), rest, values);
}

/// The slot of the panel at n.
Value DotOperands::slotOf(Value n) {
  Value panel = e.make<arith::DivUIOp>(n, e.constantIndex(2 * lanes));
  if (packsAhead())
    return e.make<arith::RemUIOp>(panel, e.constantIndex(2));
  if (!packedBefore)
    return e.constantIndex(0);
  if (leading.empty())
    return panel;
  return e.make<arith::AddIOp>(e.make<arith::MulIOp>(number(), e.constantIndex(llvm::divideCeil(N, 2 * lanes))), panel);
}

void DotOperands::selectPanel(Value n, ArrayRef<int64_t> valid, Value packed) {
  slot = slotOf(n);
  if (packedBefore)
    return;
  if (!packed)
    return packPanel(n, valid);
  packPieces(n, packed, pieces());
  packLast(n);
}

void DotOperands::packPanel(Value n, ArrayRef<int64_t> valid) {
  const bool masksAreFree = e.machine.vectorBits == 512;
  if (isTransposed)
    packTransposed(valid.size(), [&](Value column) { return std::pair(e.make<arith::AddIOp>(n, column), column); });
  else
    whereInside(masksAreFree ? std::nullopt : findEdge(dot.getB(), 1), N, [&] { packRows(n, valid); });
  if (hasTiles(unit))
    fillTiles();
}

/// Positions of k below the bound are inside an operand's view if the tile does not begin before it.
void DotOperands::assumeK(std::optional<Edge> edge, bool holds) {
  if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
    return;
  if (holds)
    e.inside[{edge->load, edge->axis}] = e.depth();
  else
    e.inside.erase({edge->load, edge->axis});
}

/// Stores to a row of the panel, from `column` on.
void DotOperands::storePanel(Value value, Value step, Value column) {
  value = e.asVector(value);
  SmallVector<Value> at = {slot, step, column};
  e.moveTo(e.depth());
  vector::StoreOp::create(e.builder, e.loc, value, panels, at);
}

/// Packs b's columns from n on, one row of the panel for each step.
void DotOperands::packRows(Value n, ArrayRef<int64_t> valid) {
  forSteps(findEdge(dot.getB(), 0), 4, [&](Ix step) { packWords(n, valid, step); });
}

void DotOperands::packWords(Value n, ArrayRef<int64_t> valid, Ix step) {
  for (size_t vector = 0; vector < valid.size(); ++vector) {
    Value column = e.constantIndex(vector * lanes);
    Ix columns = e.lanesFrom(e.make<arith::AddIOp>(n, column), valid[vector]);
    storePanel(wordsAcross([&](Ix k) { return e.at(dot.getB(), in(k, columns)); }, step), step.at, column);
  }
}

/// Transposes blocks of lanes × lanes elements or words, read along k, for several vectors of columns. `placeOf`
/// returns the position of a vector's first column in b and in the panel.
void DotOperands::packTransposed(int64_t vectors, function_ref<std::pair<Value, Value>(Value)> placeOf) {
  auto edge = findEdge(dot.getB(), 1);
  const bool clamps = edge && isNonNegative(edge->load.getOffsets()[edge->axis]);
  Value bound = clamps ? nBound : e.constantIndex(N), whole = e.constantIndex(K / span() * span());
  e.loop(e.constantIndex(0), e.constantIndex(vectors * lanes), lanes, [&](Ix vector) {
    const auto [n, column] = placeOf(vector.at);
    auto blocks = [&] {
      if (clamps)
        e.inside[{edge->load, edge->axis}] = e.depth();
      e.loop(e.constantIndex(0), e.least(kBound, whole), span(),
             [&](Ix k) { transposeBlock(n, column, bound, k.at, span()); });
      if (K % span())
        transposeBlock(n, column, bound, whole, K % span());
      e.inside.clear();
    };
    auto zeros = [&] {
      e.loop(e.constantIndex(0), steps, 1, [&](Ix step) { storePanel(zeroWord(), step.at, column); });
    };
    if (clamps)
      e.branch(e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, n, bound), blocks, zeros);
    else
      blocks();
  });
}

Value DotOperands::zeroWord() { return e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(word))); }

/// A vector of elements or words of column n along k; the first `valid` positions are in the tile.
Value DotOperands::wordsAlong(Value n, Value k, int64_t valid) {
  SmallVector<Value> parts;
  Value zeros = e.asVector(e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element))));
  for (int64_t part = 0; part < group; ++part) {
    Ix ks = e.lanesFrom(part ? e.make<arith::AddIOp>(k, e.constantIndex(part * lanes)) : k,
                        std::clamp<int64_t>(valid - part * lanes, 0, lanes));
    parts.push_back(ks.valid ? e.vectorAt(dot.getB(), in(ks, e.along(n))) : zeros);
  }
  for (; parts.size() > 1; parts.resize(parts.size() / 2))
    for (size_t i = 0; i < parts.size() / 2; ++i)
      parts[i] = joined(e, parts[2 * i], parts[2 * i + 1]);
  return asWords(parts[0]);
}

/// `transposed` for 128-bit vectors, where one instruction interleaves halves of two vectors: rows i and
/// i + lanes / 2, repeated until the block is transposed.
static SmallVector<Value> interleaved(Evaluator &e, SmallVector<Value> block) {
  const auto lanes = static_cast<int64_t>(block.size());
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    low.push_back(lane / 2 + lane % 2 * lanes);
    high.push_back(low.back() + lanes / 2);
  }
  for (int64_t done = 1; done < lanes; done *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < lanes / 2; ++i)
      for (const SmallVector<int64_t> *half : {&low, &high})
        next.push_back(e.make<vector::ShuffleOp>(block[i], block[i + lanes / 2], *half));
    block = std::move(next);
  }
  return block;
}

SmallVector<Value> transposed(Evaluator &e, SmallVector<Value> block) {
  const auto lanes = static_cast<int64_t>(block.size());
  if (lanes * getElementTypeOrSelf(block.front().getType()).getIntOrFloatBitWidth() == 128)
    return interleaved(e, std::move(block));
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
  return block;
}

/// Transposes the block of b at row k, of which `valid` rows are in the tile, and column n to `column` of the panel.
/// Columns from `bound` on are zero or unused; the last valid column is read in their place.
void DotOperands::transposeBlock(Value n, Value column, Value bound, Value k, int64_t valid) {
  SmallVector<Value> block;
  Value last = e.make<arith::SubIOp>(bound, e.constantIndex(1));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = e.make<arith::MinSIOp>(e.make<arith::AddIOp>(n, e.constantIndex(lane)), last);
    block.push_back(wordsAlong(at, k, valid));
  }
  block = transposed(e, std::move(block));
  Value inside = e.lanesBelow(e.make<arith::SubIOp>(bound, n));
  Value zero = e.asVector(zeroWord()), step = stepAt(k);
  for (int64_t lane = 0; lane < lanes; ++lane)
    storePanel(e.make<arith::SelectOp>(inside, block[lane], zero), e.make<arith::AddIOp>(step, e.constantIndex(lane)),
               column);
}

bool DotOperands::prefetches() {
  auto alongK = findEdge(dot.getB(), 0), alongN = findEdge(dot.getB(), 1);
  return alongK && alongN && alongK->load == alongN->load && !isTransposed && !packedBefore &&
         K * N * (M + N) >= prefetchFrom;
}

void DotOperands::prefetchPanel(Value n, Value m, Value step, int64_t stride) {
  if (!prefetches())
    return;
  auto alongK = findEdge(dot.getB(), 0), alongN = findEdge(dot.getB(), 1);
  const int64_t share = llvm::divideCeil(K, llvm::divideCeil(M, rows));
  Value block = e.make<arith::DivUIOp>(m, e.constantIndex(rows));
  Value first = e.make<arith::MulIOp>(block, e.constantIndex(share));
  Index index(alongK->load.getOffsets().size(), e.fixed(0));
  for (int64_t axis = 0, count = static_cast<int64_t>(leading.size()); axis < count; ++axis)
    if (auto edge = findEdge(dot.getB(), axis - count); edge && edge->load == alongK->load)
      index[edge->axis] = pair[axis];
  for (Value number : rowsAt(e, share, step, depth(), stride))
    for (int64_t vector = group == 1 ? 0 : 1; vector < 2; ++vector) { // both vectors of words are from one cache line
      index[alongK->axis] = e.along(e.make<arith::AddIOp>(first, number));
      index[alongN->axis] = e.along(e.make<arith::AddIOp>(n, requestFor(e, vector)));
      e.prefetch(alongK->load, alongK->load.getOffsets(), index);
    }
}

} // namespace kiln::lowering::cpu

// Products with AMX tiles, which are registers of 16 rows of 16 words.
//
// A block of the result is 32 × 32: four accumulator tiles. An iteration takes 16 words of k: two tiles of a and two of
// b, four products. So all tiles of a function have one shape, as LLVM requires, and all eight registers are used.
// Tiles are not cut at edges. a and b are padded with 0 to complete blocks of k; extra rows and columns are computed
// and dropped.

#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/LowerTiles.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// Creates an operation at the evaluator's position; operations on tiles must not move out of a loop.
template <class Op, class... Args> static Op here(Evaluator &e, Args &&...args) {
  e.moveTo(e.depth());
  return Op::create(e.builder, e.loc, std::forward<Args>(args)...);
}

Value DotOperands::loadTile(Value memory, ArrayRef<Value> at) {
  auto type = amx::TileType::get({tileRows, tileWords * group}, element);
  return e.noted(here<amx::TileLoadOp>(e, type, memory, at), e.depth());
}

Value DotOperands::wholeTiles(Value count) {
  Value tiles = e.make<arith::CeilDivUIOp>(count, e.constantIndex(tileWords));
  return e.make<arith::MulIOp>(tiles, e.constantIndex(tileWords));
}

SmallVector<Value>
DotOperands::multiplyTiles(Value m, Value begin, Value end, Value acc, Value row, ValueRange carried,
                           function_ref<SmallVector<Value>(Value step, ValueRange carried)> between) {
  auto type = amx::TileType::get({tileRows, lanes}, getElementTypeOrSelf(dot.getType()));
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(e.noted(here<amx::TileZeroOp>(e, type), e.depth()));
  llvm::append_range(values, carried);
  auto add = [&](Value x, Value y, Value sum) {
    Value product = isa<FloatType>(element) ? here<amx::TileMulFOp>(e, type, x, y, sum).getResult()
                                            : here<amx::TileMulIOp>(e, type, x, y, sum).getResult();
    return e.noted(product, e.depth());
  };
  auto left = [&](Value row, Value step) {
    return loadTile(a, inLeft(row, e.make<arith::MulIOp>(step, e.constantIndex(group))));
  };
  auto right = [&](Value step, int64_t half) { return loadTile(panels, {slot, step, e.constantIndex(half * lanes)}); };
  Value below = e.make<arith::AddIOp>(m, e.constantIndex(tileRows));
  values = e.loop(begin, end, tileWords, values, [&](Ix step, ValueRange sum) {
    SmallVector<Value> rest = between(step.at, sum.drop_front(4));
    Value b0 = right(step.at, 0), a0 = left(m, step.at), first = add(a0, b0, sum[0]);
    Value b1 = right(step.at, 1), second = add(a0, b1, sum[1]);
    Value a1 = left(below, step.at), third = add(a1, b0, sum[2]);
    SmallVector<Value> next = {first, second, third, add(a1, b1, sum[3])};
    return llvm::append_range(next, rest), next;
  });
  for (int64_t i = 0; i < 4; ++i) {
    SmallVector<Value> at = {i < 2 ? row : e.make<arith::AddIOp>(row, e.constantIndex(tileRows)),
                             e.constantIndex(i % 2 * lanes)};
    here<amx::TileStoreOp>(e, acc, at, values[i]);
  }
  return SmallVector<Value>(llvm::drop_begin(values, 4));
}

// --- A panel of b, piece by piece ---------------------------------------------------------------------------------
//
// A piece is one step of all columns, or a block of half the columns for a transposed b. The end handles the rest,
// which is less than a piece, and zeros.

Value DotOperands::pieces() {
  if (!isTransposed)
    return stepAt(kBound);
  Value whole = e.least(kBound, e.constantIndex(K / span() * span()));
  Value blocks = e.make<arith::CeilDivUIOp>(whole, e.constantIndex(span()));
  return e.make<arith::MulIOp>(blocks, e.constantIndex(2));
}

int64_t DotOperands::piecesAtATime() const {
  return llvm::divideCeil(isTransposed ? 2 : tileWords, llvm::divideCeil(M, 2 * tileRows));
}

void DotOperands::packPieces(Value n, Value begin, Value end) {
  const Value read = slot;
  slot = slotOf(n);
  auto edge = findEdge(dot.getB(), 0);
  if (!isTransposed)
    assumeK(edge, true);
  e.loop(begin, end, 1, [&](Ix piece) {
    if (!isTransposed)
      return packWords(n, {lanes, lanes}, piece);
    Value half = e.make<arith::RemUIOp>(piece.at, e.constantIndex(2));
    Value block = e.make<arith::DivUIOp>(piece.at, e.constantIndex(2));
    transposeInside(n, e.make<arith::MulIOp>(half, e.constantIndex(lanes)),
                    e.make<arith::MulIOp>(block, e.constantIndex(span())), span());
  });
  if (!isTransposed)
    assumeK(edge, false);
  slot = read;
}

/// Packs the rest after the last complete piece.
void DotOperands::packLast(Value n) {
  if (isTransposed && K % span())
    for (int64_t half = 0; half < 2; ++half)
      transposeInside(n, e.constantIndex(half * lanes), e.constantIndex(K / span() * span()), K % span());
  if (!isTransposed && !isWhole(kBound))
    forPartialStep(stepAt(kBound), [&](Ix step) { packWords(n, {lanes, lanes}, step); });
  fillTiles();
}

/// Packs the block at `column` of the panel at n and at row k of b; zeros if none of its columns is inside.
void DotOperands::transposeInside(Value n, Value column, Value k, int64_t valid) {
  auto edge = findEdge(dot.getB(), 1);
  Value first = e.make<arith::AddIOp>(n, column);
  if (!edge || !isNonNegative(edge->load.getOffsets()[edge->axis]))
    return transposeBlock(first, column, e.constantIndex(N), k, valid);
  auto block = [&] {
    e.inside[{edge->load, edge->axis}] = e.depth();
    transposeBlock(first, column, nBound, k, valid);
    e.inside.clear();
  };
  auto zeros = [&] {
    for (int64_t lane = 0; lane < lanes; ++lane)
      storePanel(zeroWord(), e.make<arith::AddIOp>(stepAt(k), e.constantIndex(lane)), column);
  };
  e.branch(e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, first, nBound), block, zeros);
}

/// Pads the panel after its last step, because complete tiles of it are read.
void DotOperands::fillTiles() {
  e.loop(steps, wholeTiles(steps), 1, [&](Ix step) {
    for (int64_t vector = 0; vector < 2; ++vector)
      storePanel(zeroWord(), step.at, e.constantIndex(vector * lanes));
  });
}

// --- a ------------------------------------------------------------------------------------------------------------

/// a, which is `tile` or, one matrix at a time, its transpose, in complete blocks, padded with 0. The row stride is an
/// odd number of cache lines.
void DotOperands::copyBlocks(Value tile) {
  const int64_t line = 64 / (element.getIntOrFloatBitWidth() / 8);
  const auto end = static_cast<int64_t>(llvm::alignTo(K, tileWords * group));
  const auto height = static_cast<int64_t>(llvm::alignTo(M, 2 * tileRows));
  SmallVector<int64_t> shape;
  if (!swapped)
    llvm::append_range(shape, leading);
  shape.append({height, end + line});
  e.moveTo(0);
  a = memref::AllocaOp::create(e.builder, e.loc, MemRefType::get(shape, element), e.builder.getI64IntegerAttr(64));
  if (swapped)
    return;
  emitLoops(Root{Root::Kind::place, dot, tile, a, -1}, dot, e.machine, buffers);
  forMatrices([&] { fillBlocks(); });
}

/// Pads the matrix of a past its depth.
void DotOperands::fillBlocks() {
  const auto end = static_cast<int64_t>(llvm::alignTo(K, tileWords * group));
  if (K == end)
    return;
  Value zero = e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element)));
  e.loop(e.constantIndex(0), e.constantIndex(M), 1, [&](Ix m) {
    e.loop(e.constantIndex(K), e.constantIndex(end), 1, [&](Ix k) {
      Index index(swapped ? Index() : pair);
      index.append({m, k});
      e.storeBuffer(zero, a, index);
    });
  });
}

/// copyBlocks for a column-major operand: 16 × 16 words are read by columns and transposed.
void DotOperands::transposeBlocks(Value tile) {
  const int64_t whole = depth() / tileWords * tileWords;
  auto block = [&](Ix m, Value first, int64_t count) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < tileWords; ++i) {
      Ix step = e.along(e.make<arith::AddIOp>(first, e.constantIndex(i)));
      words.push_back(i < count ? wordsAcross([&](Ix k) { return e.vectorAt(tile, in(k, m)); }, step)
                                : e.asVector(zeroWord()));
    }
    words = transposed(e, std::move(words));
    auto elements = VectorType::get({lanes * group}, element);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      SmallVector<Value> at = {e.make<arith::AddIOp>(m.at, e.constantIndex(lane)),
                               e.make<arith::MulIOp>(first, e.constantIndex(group))};
      Value row = e.make<vector::BitCastOp>(elements, words[lane]);
      here<vector::StoreOp>(e, row, a, at);
    }
  };
  auto column = [&](Ix m) {
    e.loop(e.constantIndex(0), e.constantIndex(whole), tileWords, [&](Ix step) { block(m, step.at, tileWords); });
    if (whole < depth())
      block(m, e.constantIndex(whole), depth() - whole);
  };
  e.loop(e.constantIndex(0), e.constantIndex(M / lanes * lanes), lanes,
         [&](Ix m) { column(e.lanesFrom(m.at, lanes)); });
  if (M % lanes)
    column(e.lanesFrom(e.constantIndex(M / lanes * lanes), M % lanes));
}

} // namespace kiln::lowering::cpu

// Decides which memory a nest or a product prefetches, and in which iterations.

#include "lowering/cpu/Prefetch.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace kiln::lowering::cpu {

SmallVector<Value> rowsAt(Evaluator &e, int64_t rows, Value k, int64_t K, int64_t step) {
  const int64_t iterations = llvm::divideCeil(K, step), atOnce = llvm::divideCeil(rows, iterations);
  const int64_t pause = std::max<int64_t>(1, iterations / rows);
  Value first =
      e.make<arith::MulIOp>(e.make<arith::DivUIOp>(k, e.constantIndex(step * pause)), e.constantIndex(atOnce));
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < atOnce; ++i)
    numbers.push_back(e.make<arith::AddIOp>(first, e.constantIndex(i)));
  return numbers;
}

Value requestFor(Evaluator &e, int64_t vector) { return e.constantIndex((vector + 1) * e.machine.lanes() - 1); }

/// Bytes of a cache line, and the longest rows, in lines, that are prefetched when b is packed and a is copied.
/// Measured by `kiln-bench matmul`.
static constexpr int64_t lineBytes = 64, longestPacked = 8, longestCopied = 16;

/// Whether `dot` is the first product of its block that reads `load`, and reads it as its right operand.
static bool packsFirst(tile::DotOp dot, tile::LoadOp load) {
  bool packs = false;
  for (const Reader &reader : readersOf(load.getResult())) {
    auto other = dyn_cast<tile::DotOp>(reader.operand->getOwner());
    if (!other || other->getBlock() != dot->getBlock())
      continue;
    packs |= reader.operand == &dot.getBMutable();
    if (other->isBeforeInBlock(dot))
      return false;
  }
  return packs;
}

/// Whether `dot` copies `load`, possibly converted, as its left operand.
static bool copies(tile::DotOp dot, tile::LoadOp load) {
  auto place = dot->getAttrOfType<StringAttr>("cpu.left");
  if (place != "copy" && place != "scratch")
    return false;
  Value tile = dot.getA();
  while (Operation *op = tile.getDefiningOp())
    if (isa<arith::ExtFOp, arith::ExtSIOp, tile::TransposeOp>(op))
      tile = op->getOperand(0);
    else
      return op == load;
  return false;
}

NextStep::NextStep(tile::DotOp dot, Evaluator &e) : e(e) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  if (!loop)
    return;
  for (tile::LoadOp load : dot->getBlock()->getOps<tile::LoadOp>())
    if (const int64_t longest = packsFirst(dot, load) ? longestPacked : copies(dot, load) ? longestCopied : 0)
      if (auto tile = nextTile(load, loop, longest))
        tiles.push_back(std::move(*tile));
}

/// The elements of a line of a view's memory.
static int64_t elementsOfLine(tile::AccessOp load) {
  return lineBytes * 8 / std::max<int64_t>(8, load.getView().getType().getElementTypeBitWidth());
}

/// The position of `load` in the next iteration of `loop`, if it is computable now.
static std::optional<SmallVector<Value>> nextOffsets(tile::AccessOp load, scf::ForOp loop, Evaluator &e) {
  IRMapping next;
  e.moveTo(0);
  Value position = loop.getInductionVar();
  next.map(position, e.make<arith::AddIOp>(position, loop.getStep()));
  SmallVector<Value> offsets;
  bool changes = false;
  std::function<bool(Value)> advance = [&](Value value) {
    if (next.contains(value))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody())
      return !loop->isAncestor(value.getParentRegion()->getParentOp()); // known before the loop
    if (!isPure(op) || op->getNumRegions() || op->getNumResults() != 1 || !llvm::all_of(op->getOperands(), advance))
      return false;
    e.moveTo(0);
    e.builder.clone(*op, next);
    return true;
  };
  for (Value offset : load.getSubscripts()) {
    if (!advance(offset))
      return std::nullopt;
    offsets.push_back(next.lookupOrDefault(offset));
    changes |= offsets.back() != offset;
  }
  if (!changes)
    return std::nullopt;
  return offsets;
}

/// The tile that `load` reads in the next iteration of `loop`, if it is another one with rows of at most `longest`
/// lines.
std::optional<NextStep::Tile> NextStep::nextTile(tile::LoadOp load, scf::ForOp loop, int64_t longest) {
  auto [strides, start] = load.getView().getType().getStridesAndOffset();
  auto extents = tile::shapeOf(load.getType());
  const int64_t last = static_cast<int64_t>(extents.size()) - 1;
  const auto isWide = [&](int64_t axis) { return extents[axis] > 1; };
  const auto rows = llvm::to_vector(llvm::make_filter_range(llvm::seq<int64_t>(0, std::max<int64_t>(last, 0)), isWide));
  if (rows.size() != 1 || strides[last] != 1 || extents[last] > longest * elementsOfLine(load))
    return std::nullopt;

  auto offsets = nextOffsets(load, loop, e);
  if (!offsets)
    return std::nullopt;
  return Tile{load, std::move(*offsets), rows[0]};
}

void NextStep::prefetch(Value block, int64_t blocks, Value k, int64_t K, int64_t step) {
  for (Tile &tile : tiles) {
    auto extents = tile::shapeOf(tile.load.getType());
    const int64_t share = llvm::divideCeil(extents[tile.axis], blocks);
    Value first = e.make<arith::MulIOp>(block, e.constantIndex(share));
    Index index(extents.size(), e.fixed(0));
    for (Value number : rowsAt(e, share, k, K, step))
      for (int64_t end = 0; end < extents.back();) {
        end = std::min(end + elementsOfLine(tile.load), extents.back());
        index[tile.axis] = e.along(e.make<arith::AddIOp>(first, number));
        index.back() = e.fixed(end - 1); // the last element, as in requestFor
        e.prefetch(tile.load, tile.offsets, index);
      }
  }
}

/// A nest that reads at least this many rows of a view prefetches their next ones. Measured by `kiln-bench layernorm`.
static constexpr int64_t manyRows = 4;

static ArrayRef<int64_t> shapeOf(tile::AccessOp access) { return access.getTile().getType().getShape(); }

/// Whether both shapes have equal extents, without those of 1, and equal last extents other than 1.
static bool areAlike(ArrayRef<int64_t> one, ArrayRef<int64_t> other) {
  const auto isWide = [](int64_t extent) { return extent != 1; };
  return one.back() != 1 && one.back() == other.back() &&
         llvm::equal(llvm::make_filter_range(one, isWide), llvm::make_filter_range(other, isWide));
}

NextRows::NextRows(ArrayRef<tile::AccessOp> accesses, ArrayRef<int64_t> shape, Operation *before, Evaluator &e)
    : shape(shape) {
  auto loop = dyn_cast<scf::ForOp>(before->getParentOp());
  if (!loop || shape.empty())
    return;
  const auto readsRows = [&](tile::AccessOp access) {
    return access.isLoad() && access.getIndexRank() == 0 && access->getBlock() == loop.getBody() &&
           !access.getSubscripts().empty() && access.getView().getType().getStridesAndOffset().first.back() == 1 &&
           areAlike(shapeOf(access), shape);
  };
  for (tile::AccessOp load : llvm::make_filter_range(accesses, readsRows)) {
    const auto isBelow = [&](tile::AccessOp other) { // in the same columns
      return readsRows(other) && other.getView() == load.getView() &&
             other.getSubscripts().back() == load.getSubscripts().back();
    };
    if (llvm::count_if(accesses, isBelow) >= manyRows)
      if (auto offsets = nextOffsets(load, loop, e); offsets && offsets->back() == load.getSubscripts().back())
        rows.push_back({load, std::move(*offsets)});
  }
}

void NextRows::prefetch(Evaluator &e, Index index, Value first, int64_t count) const {
  for (const auto &[load, offsets] : rows)
    for (int64_t at = 0; at < count; at += elementsOfLine(load)) {
      index.back() = e.along(e.make<arith::AddIOp>(first, e.constantIndex(at)));
      e.prefetch(load, offsets, e.acrossUnits(shapeOf(load), shape, index));
    }
}

} // namespace kiln::lowering::cpu

// See Recomputation.h.

#include "lowering/cpu/Recomputation.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/cpu/Group.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// The most times that a computation is executed, and that its code is emitted. Only one side of a branch is executed.
static constexpr int64_t maxExecuted = 3, maxEmitted = 8;
/// A shorter computation may be repeated more often.
static constexpr int64_t shortest = 24;

namespace {

/// Follows the evaluator through a computation without emitting it.
class Counter {
public:
  Counter(const DenseSet<Value> &inScratch, const DenseSet<Value> &fromPlace, function_ref<int64_t(Value)> costOf)
      : inScratch(inScratch), fromPlace(fromPlace), costOf(costOf) {}

  /// Whether nothing is computed for `tile`.
  bool isLeaf(Value tile) const {
    Operation *op = tile.getDefiningOp();
    return !op || inScratch.contains(tile) || !(isLoad(op) || isInlinable(op)) || op->hasTrait<OpTrait::ConstantLike>();
  }

  /// The cost of the operation itself.
  int64_t ownCost(Value tile) const {
    if (isLeaf(tile))
      return 1;
    Operation *const op = tile.getDefiningOp();
    if (auto access = dyn_cast<tile::AccessOp>(op))
      return access.getIndexRank() == 0 ? 1 : addressed;
    auto move = dyn_cast<tile::MoveOp>(op);
    return move && isPlain(move) ? 0 : cpu::costOf(op);
  }

  /// The cost of the tile's computation with one position for each tile; nothing if no tile can have several.
  std::optional<int64_t> costOnce(Value tile) {
    int64_t cost = 0;
    bool moves = false;
    DenseSet<Value> seen;
    SmallVector<Value> work = {tile};
    while (!work.empty()) {
      const Value value = work.pop_back_val();
      if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second)
        continue;
      cost += ownCost(value);
      if (value != tile && isLeaf(value))
        continue;
      moves |= isa<tile::MoveOp, arith::SelectOp>(value.getDefiningOp());
      llvm::append_range(work, value.getDefiningOp()->getOperands());
    }
    return moves ? std::optional(cost) : std::nullopt;
  }

  /// Counts the computation until its cost exceeds `max`; returns whether it does. If `emitted`, each side of a branch
  /// counts on its own.
  bool costsMoreThan(int64_t max, Value tile, bool emitted) {
    left = max;
    branches = emitted;
    times.clear();
    known.clear();
    entered.clear();
    Position position;
    for (int64_t axis = 0, rank = cast<RankedTensorType>(tile.getType()).getRank(); axis < rank; ++axis)
      position.push_back(newPosition());
    visitOperands(tile.getDefiningOp(), position);
    return left < 0;
  }

  /// For each tile, the number of positions at which it is computed.
  llvm::MapVector<Value, int64_t> times;

private:
  /// A number for each dimension. Equal numbers are positions that the evaluator knows to be equal.
  using Position = SmallVector<int64_t, 4>;
  using Element = std::pair<void *, Position>;

  bool isFromPlace(Value value) const { return !isa<RankedTensorType>(value.getType()) || fromPlace.contains(value); }

  int64_t newPosition() { return ++positions; }

  void visit(Value tile, Position position) {
    if (left < 0 || !isa<RankedTensorType>(tile.getType()))
      return;
    position.resize(cast<RankedTensorType>(tile.getType()).getRank()); // index tiles have the first dimensions
    if (!known.insert({tile.getAsOpaquePointer(), position}).second)
      return;
    entered.push_back({tile.getAsOpaquePointer(), position});
    ++times[tile];
    left -= ownCost(tile);
    if (!isLeaf(tile))
      visitOperands(tile.getDefiningOp(), position);
  }

  void visitOperands(Operation *op, const Position &position) {
    if (auto move = dyn_cast<tile::MoveOp>(op))
      return visit(move.getMoved(), moved(move, position));
    auto select = dyn_cast<arith::SelectOp>(op);
    const bool isBranch = branches && select && isFromPlace(select.getCondition()) &&
                          std::max(costOf(select.getTrueValue()), costOf(select.getFalseValue())) > branchCost;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      const size_t before = entered.size();
      visit(operand, position);
      if (isBranch && number > 0) // values of a branch are not known after it
        for (; entered.size() > before; entered.pop_back())
          known.erase(entered.back());
    }
  }

  Position moved(tile::MoveOp move, const Position &position) {
    Position inner;
    for (AffineExpr expr : move.getMoveMap().getResults()) {
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        inner.push_back(position[dim.getPosition()]);
      else if (auto constant = dyn_cast<AffineConstantExpr>(expr))
        inner.push_back(-1 - constant.getValue());
      else
        inner.push_back(newPosition());
    }
    return inner;
  }

  const DenseSet<Value> &inScratch, &fromPlace;
  function_ref<int64_t(Value)> costOf;
  int64_t left = 0, positions = 0;
  bool branches = false;
  std::set<Element> known;
  std::vector<Element> entered; // in the order in which they became known
};

} // namespace

Value mostRecomputed(Value tile, const DenseSet<Value> &inScratch, const DenseSet<Value> &fromPlace,
                     function_ref<int64_t(Value)> costOf) {
  if (!isInlinable(tile.getDefiningOp()) && !isLoad(tile.getDefiningOp()))
    return {};
  Counter counter(inScratch, fromPlace, costOf);
  const std::optional<int64_t> once = counter.costOnce(tile);
  if (!once || (!counter.costsMoreThan(std::max(shortest, maxExecuted * *once), tile, /*emitted=*/false) &&
                !counter.costsMoreThan(std::max(shortest, maxEmitted * *once), tile, /*emitted=*/true)))
    return {};
  Value found;
  int64_t best = 0;
  for (auto [value, times] : counter.times) {
    Operation *const op = value.getDefiningOp();
    // The source of a transpose is stored in its place: a stored transpose is computed block by block (ManyRows.cpp).
    if (counter.isLeaf(value) || isa<tile::TransposeOp>(op))
      continue;
    const int64_t saved = (times - 1) * (std::max(costOf(value), counter.ownCost(value)) - 1);
    if (saved >= best && saved > 0) {
      best = saved;
      found = value;
    }
  }
  return found;
}

} // namespace kiln::lowering::cpu

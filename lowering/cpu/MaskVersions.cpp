// Emits versions of a nest for its masks: one without masks, where a triangle covers the tile or all masks of accesses
// are true, and one with them. A mask gets a version only if the nest reads it at its own positions alone.

#include "lowering/analysis/Masks.h"
#include "lowering/analysis/TileUses.h"
#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

// --- Triangles -------------------------------------------------------------------------------------------------------

llvm::SmallDenseSet<Value> Nest::findMoved() {
  llvm::SmallDenseSet<Value> own, moved;
  std::function<void(Value, bool)> visit = [&](Value tile, bool isMoved) {
    Operation *op = tile.getDefiningOp();
    if (!isa<RankedTensorType>(tile.getType()) || !(isMoved ? moved : own).insert(tile).second || !op ||
        e.isBuffered(tile))
      return;
    const Value itsMask = isLoad(op) ? cast<tile::AccessOp>(op).getMaskIfAny() : Value();
    for (Value operand : op->getOperands())
      visit(operand, isMoved || !(isElementwise(op) || operand == itsMask));
  };
  for (const Root &root : roots) {
    visit(root.value, false);
    if (root.isScan())
      for (Value source : root.op->getOperands())
        visit(source, false);
    if (root.kind != Root::Kind::store)
      continue;
    auto store = cast<tile::AccessOp>(root.op);
    if (Value itsMask = store.getMaskIfAny())
      visit(itsMask, false); // merged rows have none
    for (Value subscript : store.getSubscripts())
      visit(subscript, true);
  }
  return moved;
}

Value Nest::findMask() {
  const llvm::SmallDenseSet<Value> moved = findMoved();
  SmallVector<Value> work;
  for (const Root &root : roots)
    work.push_back(root.value);
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value tile = work.pop_back_val();
    Operation *op = tile.getDefiningOp();
    if (!seen.insert(tile).second || !op || e.isBuffered(tile) || !isElementwise(op))
      continue;
    if (comparisonOf(tile) && !moved.contains(tile))
      return tile;
    llvm::append_range(work, op->getOperands());
  }
  return {};
}

SmallVector<Value> Nest::inVersions(ValueRange like, function_ref<SmallVector<Value>()> body) {
  if (!mask)
    return body();
  triangle = *comparisonOf(mask);
  Value last = e.constantIndex((triangle.transposed ? shape[0] : shape[1]) - 1 - triangle.offset);
  Value coversAll = e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, last, e.asIndex(triangle.limit));
  return e.choose(coversAll, like.getTypes(), [&] { return assuming(true, body); }, body);
}

SmallVector<Value> Nest::assuming(bool inside, function_ref<SmallVector<Value>()> body) {
  e.assumed[mask] = inside;
  SmallVector<Value> values = body();
  e.assumed.erase(mask);
  return values;
}

Value Nest::liesOutside(const Index &index) {
  const auto [row, column] = std::pair(index[0].at, index[1].at);
  Value distance = triangle.transposed ? e.make<arith::SubIOp>(row, column) : e.make<arith::SubIOp>(column, row);
  const int64_t nearest = triangle.transposed ? index[1].valid - 1 : 0; // the lane nearest to the edge
  Value least = e.make<arith::SubIOp>(distance, e.constantIndex(nearest + triangle.offset));
  return e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, least, e.asIndex(triangle.limit));
}

void Nest::step(const Index &index, States &states) {
  if (!checksEachVector())
    return all(index, states);
  const SmallVector<Value> before = scans.with(flat({states}));
  auto computed = [&] {
    States next = states;
    scans.take(before);
    all({e.keptHere(index[0]), index[1]}, next);
    return scans.with(flat({next}));
  };
  auto outside = [&] { return assuming(false, computed); };
  const SmallVector<Value> after = e.choose(liesOutside(index), ValueRange(before).getTypes(), outside, computed);
  states = unflat(after, 1).front();
  scans.take(after);
}

// --- Masks of accesses -----------------------------------------------------------------------------------------------

llvm::SetVector<Value> Nest::findMasks() {
  const llvm::SmallDenseSet<Value> moved = findMoved();
  llvm::SetVector<Value> found;
  llvm::SmallDenseSet<Value> seen;
  auto addMask = [&](Operation *op) {
    if (Value tile = cast<tile::AccessOp>(op).getMaskIfAny(); tile && !moved.contains(tile))
      found.insert(tile);
  };
  std::function<void(Value)> visit = [&](Value tile) {
    Operation *op = tile.getDefiningOp();
    if (!op || e.isBuffered(tile) || !seen.insert(tile).second)
      return;
    if (isLoad(op))
      addMask(op);
    else if (isElementwise(op))
      llvm::for_each(op->getOperands(), visit);
  };
  for (const Root &root : roots) {
    if (root.kind == Root::Kind::store)
      addMask(root.op); // merged rows have none
    visit(root.value);
  }
  return found;
}

Value Nest::masksHold(Index &index, ArrayRef<Ix> positions) {
  Value ends, all;
  const Ix last = positions.back();
  const auto endAt = [&](Value position) {
    Index end = index;
    end[laneAxis] = {position, std::max(e.depthOf(position), outermost), false, 0};
    return end;
  };
  const Index firstEnd = endAt(positions.front().at),
              lastEnd = endAt(e.make<arith::AddIOp>(last.at, e.constantIndex(last.valid - 1)));
  for (Value tile : masks) {
    SmallVector<MayWrap> sums;
    if (holdsInInterval(tile, laneAxis, sums)) {
      for (const Index &end : {firstEnd, lastEnd})
        ends = e.both(ends, e.at(tile, end));
      for (const auto &[sum, places, falls] : sums) {
        const auto [below, above] = falls ? std::pair(&lastEnd, &firstEnd) : std::pair(&firstEnd, &lastEnd);
        ends = e.both(ends, e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, e.at(sum, *e.mapped(places, *below)),
                                                  e.at(sum, *e.mapped(places, *above))));
      }
    } else {
      for (const Ix &position : positions) {
        index[laneAxis] = position;
        all = e.both(all, e.vectorAt(tile, index));
      }
    }
  }
  return e.both(ends, all ? e.allTrue(all, last.valid) : Value());
}

SmallVector<Value> Nest::whereMasksHold(Index &index, ArrayRef<Ix> positions, ValueRange like,
                                        function_ref<SmallVector<Value>(ArrayRef<Ix>)> body) {
  if (masks.empty() || positions.size() == 1)
    return body(positions);
  const auto kept = [&](ArrayRef<Ix> some) { // values that depend on masks stay in their version
    return body(llvm::map_to_vector(some, [&](const Ix &position) { return e.keptHere(position); }));
  };
  const auto ask = [&](ArrayRef<Ix> some, function_ref<SmallVector<Value>()> otherwise) {
    const auto holding = [&] {
      for (Value tile : masks)
        e.assumed[tile] = true;
      SmallVector<Value> values = kept(some);
      for (Value tile : masks)
        e.assumed.erase(tile);
      return values;
    };
    return e.choose(masksHold(index, some), like.getTypes(), holding, otherwise);
  };
  return ask(positions, [&]() -> SmallVector<Value> {
    if (!reductions.empty())
      return kept(positions);
    Value end = e.make<arith::AddIOp>(positions.back().at, e.constantIndex(1));
    e.loop(positions.front().at, end, e.machine.lanes(), [&](Ix base) {
      const Ix one = lanesAt(base.at, 0, positions.front().valid);
      ask(one, [&] { return kept(one); });
    });
    return {};
  });
}

bool Nest::checksOncePerRow(int64_t maxUnrolled) {
  const int64_t vectors = shape[laneAxis] / e.machine.lanes();
  return !masks.empty() && maxUnrolled > 1 && vectorsInLoop(vectors, maxUnrolled) > 0 &&
         llvm::all_of(masks, [&](Value tile) {
           SmallVector<MayWrap> sums;
           return holdsInInterval(tile, laneAxis, sums);
         });
}

Nest::States Nest::whereMasksHoldForRow(const Index &index, int64_t maxUnrolled) {
  const auto here = [&] {
    const int64_t around = std::exchange(outermost, e.depth());
    Index kept = keptHere(index);
    const SmallVector<Value> values = flat({row(kept, maxUnrolled)});
    outermost = around;
    return values;
  };
  const auto holding = [&] {
    const llvm::SetVector<Value> asked = std::exchange(masks, {});
    for (Value tile : asked)
      e.assumed[tile] = true;
    SmallVector<Value> values = here();
    for (Value tile : asked)
      e.assumed.erase(tile);
    masks = asked;
    return values;
  };
  Index ends = index;
  Value hold = masksHold(ends, lanesAt(e.constantIndex(0), 0, shape[laneAxis]));
  return unflat(e.choose(hold, ValueRange(flat({neutral()})).getTypes(), holding, here), 1).front();
}

} // namespace kiln::lowering::cpu

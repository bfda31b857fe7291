// Emits the loop nests of stores, reductions, scans and scratch tiles. There are two forms:
//
//   rows:     for each row { for each step of 4 vectors { stores, scratch tiles, partial reductions }; finish }
//   columns:  for each 4 to 16 vectors of columns { for each position of the axis { partial reductions }; finish }
//
// Rows of a gather are at arbitrary addresses: four of them are interleaved, a vector each, so that none waits for
// another.
//
// A causal mask is a triangle of the tile. A nest with such a mask has two versions. One, without the mask, is for
// tiles that the triangle covers. The other tests each vector, and uses a false mask outside.
//
// If tiles may extend past their views, the nest has two versions as well. One, without masks, is for tiles inside. The
// other, with a vector per iteration, is short and for all other tiles. Masks cost more than their instructions: AMD's
// Zen 5 does not prefetch for masked loads. The branch between the versions is outside of all loops. Inside, strides
// and addresses would not fit the registers; a row would load them from memory, and take half as long again.
//
// The last, partial vector of a row is peeled. Scratch rows are padded, so only views and reductions need its mask.
//
// Scans carry one state along each row or column. The nest of a reverse scan iterates backwards.
//
// A check is a reduction of its condition over all rows. If it fails, the tile is searched again after the nest,
// element by element. So the first of several checks reports its first element, and the row loop has no calls or
// branches.

#include "lowering/analysis/Masks.h"
#include "lowering/cpu/Group.h"
#include "lowering/cpu/LowerTiles.h"
#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// The reduction's kind; for a check, the conjunction.
static tile::ReduceKind kindOf(const Root &root) {
  auto reduce = dyn_cast<tile::ReduceOp>(root.op);
  return reduce ? reduce.getKind() : tile::ReduceKind::Min;
}

static bool namesPositions(tile::AccessOp access) { return access.isLoad() && access.getIndexRank() > 0; }

Nest::Nest(ArrayRef<Root> roots, Operation *before, Machine machine, const DenseMap<Value, Value> &buffers,
           ReadTiles *read)
    : roots(roots), e(before->getLoc(), machine, buffers), shape(roots.front().shape()), scans(e, roots) {
  e.levels.push_back({before->getBlock(), before});
  if (!roots.front().isColumns() && !isJoined())
    mask = findMask();
  laneAxis = findLaneAxis();
  if ((isNarrow = takesNarrowRows()))
    return;
  const bool inLoop = isa<LoopLikeOpInterface>(before->getParentOp()), isTransposed = roots.front().isTransposed();
  if (!isTransposed && (!(masksCostMuch(read) || inLoop) || !paysTwice()))
    return;
  for (tile::AccessOp access : accessesOf(roots, e))
    inside = e.both(inside, e.liesInside(access));
  if (isTransposed)
    return;
  bitsInside = elementBitsOf(roots, e);
  if (!isJoined())
    nextRows = NextRows(accessesOf(roots, e).getArrayRef(), shape, before, e);
  if (scans.empty() && !roots.front().isColumns())
    masks = findMasks();
}

SmallVector<Value> Nest::emit() {
  Index index(shape.size());
  for (const Root &root : roots)
    if (root.kind == Root::Kind::reduce || root.kind == Root::Kind::check)
      reductions.push_back({&root, Reduction(e, kindOf(root), getElementTypeOrSelf(root.value.getType()))});
  if (roots.front().isTransposed())
    transposeBlocks();
  else if (isNarrow)
    narrowRows();
  else if (roots.front().isColumns())
    outerInOrOver(roots.front().axis, {}, [&](Index &position, int64_t unroll, ValueRange) -> SmallVector<Value> {
      columns(position, roots.front().axis, unroll);
      return {};
    });
  else if (reducesTogether())
    rowsTogether(index);
  else if (gathersRows())
    rowsAbreast(index);
  else
    rowByRow(index);
  return scalars;
}

int64_t Nest::findLaneAxis() {
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  if (isJoined())
    return last - 1;
  const bool onlyStores = llvm::all_of(roots, [](const Root &root) { return root.kind == Root::Kind::store; });
  if (mask || !onlyStores || llvm::any_of(accessesOf(roots, e), namesPositions))
    return last;
  for (int64_t axis = last; axis >= 0; --axis)
    if (shape[axis] != 1)
      return axis;
  return last;
}

SmallVector<Value> Nest::outer(size_t axis, Index &index, int64_t except, ValueRange carried,
                               function_ref<SmallVector<Value>(ValueRange)> body) {
  if (axis >= shape.size())
    return body(carried);
  if (static_cast<int64_t>(axis) == except || static_cast<int64_t>(axis) == laneAxis)
    return outer(axis + 1, index, except, carried, body);
  if (shape[axis] == 1 || isOfJoined(static_cast<int64_t>(axis))) {
    index[axis] = e.fixed(0);
    return outer(axis + 1, index, except, carried, body);
  }
  return loop(shape[axis], 1, carried, [&](Ix position, ValueRange inner) {
    index[axis] = position;
    return outer(axis + 1, index, except, inner, body);
  });
}

// --- Tiles inside their views ----------------------------------------------------------------------------------------

bool Nest::paysTwice() const {
  constexpr int64_t fewVectors = 16;
  return !mask && shape[laneAxis] >= e.machine.lanes() && llvm::product_of(shape) >= fewVectors * e.machine.lanes();
}

bool Nest::masksCostMuch(ReadTiles *read) {
  const bool slowStores = e.machine.vectorBits < 512;
  bool much = !read;
  for (tile::AccessOp access : accessesOf(roots, e))
    if (!access.isLoad())
      much |= slowStores;
    else if (read)
      much |= read->insert(access).second;
  return much;
}

Index Nest::keptHere(const Index &index) {
  return llvm::map_to_vector<4>(index,
                                [&](const Ix &position) { return position.at ? e.keptHere(position) : position; });
}

SmallVector<Value> Nest::inOrOver(const Index &index, ValueRange like,
                                  function_ref<SmallVector<Value>(Index, int64_t unroll)> body) {
  auto without = [&](Index position) {
    const Machine usual = e.machine;
    e.machine = usual.withLanes(usual.vectorBits / bitsInside);
    SmallVector<Value> values = body(std::move(position), sideBySide);
    e.machine = usual;
    return values;
  };
  if (!inside)
    return without(index);
  auto here = [&] {
    outermost = e.depth();
    return keptHere(index);
  };
  auto lies = [&] {
    for (tile::AccessOp access : accessesOf(roots, e))
      e.takeInside(access);
    SmallVector<Value> values = without(here());
    e.inside.clear();
    return values;
  };
  SmallVector<Value> values = e.choose(inside, like.getTypes(), lies, [&] { return body(here(), 1); });
  outermost = 0;
  return values;
}

bool Nest::hasOuterLoops() const {
  return llvm::any_of(llvm::enumerate(shape), [&](const auto &entry) {
    const auto axis = static_cast<int64_t>(entry.index());
    return entry.value() > 1 && axis != laneAxis && !isOfJoined(axis);
  });
}

SmallVector<Value> Nest::outerInOrOver(int64_t except, ValueRange carried,
                                       function_ref<SmallVector<Value>(Index &, int64_t, ValueRange)> body) {
  return inOrOver({}, carried, [&](const Index &, int64_t unroll) {
    Index index(shape.size());
    return outer(0, index, except, carried, [&](ValueRange inner) { return body(index, unroll, inner); });
  });
}

// --- Rows ------------------------------------------------------------------------------------------------------------

Nest::States Nest::neutral() {
  States states;
  for (auto &[root, reduction] : reductions)
    states.push_back(reduction.neutral());
  return states;
}

SmallVector<Value> Nest::flat(const SmallVector<States> &all) {
  SmallVector<Value> values;
  for (const States &states : all)
    for (const Reduction::State &state : states)
      llvm::append_range(values, state);
  return values;
}

SmallVector<Nest::States> Nest::unflat(ValueRange values, int64_t copies) {
  SmallVector<States> all(copies);
  size_t next = 0;
  for (States &states : all)
    for (auto &[root, reduction] : reductions) {
      const size_t count = reduction.hasIndex() ? 2 : 1;
      states.push_back(Reduction::State(values.slice(next, count)));
      next += count;
    }
  return all;
}

void Nest::write(const Root &root, Value value, const Index &index) {
  if (root.kind == Root::Kind::store)
    return e.store(value, cast<tile::AccessOp>(root.op), root.places ? *e.mapped(*root.places, index) : index);
  e.place(value, root.value, root.buffer, index);
  e.remember(root.value, index, value);
}

void Nest::all(const Index &index, States &states) {
  size_t next = 0;
  for (const Root &root : roots) {
    if (root.joined) {
      writeJoined(root, index);
      continue;
    }
    Value value = e.at(root.value, index);
    switch (root.kind) {
    case Root::Kind::store:
    case Root::Kind::place:
      write(root, value, index);
      break;
    case Root::Kind::scan:
      scans.step(root, index);
      break;
    case Root::Kind::check:
    case Root::Kind::reduce: {
      const Ix &along = index[root.axis];
      states[next] = reductions[next].second.add(states[next], value, along.at, along.lanes, along.valid);
      ++next;
      break;
    }
    }
  }
}

Ix Nest::lanesAt(Value base, int64_t offset, int64_t valid) {
  Value at = offset ? e.make<arith::AddIOp>(base, e.constantIndex(offset)) : base;
  return {at, std::max(e.depthOf(at), outermost), true, valid};
}

SmallVector<Piece> Nest::remainder(int64_t from, int64_t extent) {
  return piecesOf(from, extent, e.machine.lanes(), Machine{e.machine.vectorBits}.lanes());
}

void Nest::forEach(ArrayRef<Piece> pieces, function_ref<void(Ix)> body) {
  const Machine wide = e.machine;
  for (auto [first, lanes, valid] : pieces) {
    e.machine = wide.withLanes(lanes);
    body(lanesAt(e.constantIndex(first), 0, valid));
  }
  e.machine = wide;
}

void Nest::readAll(Index &index, ArrayRef<Ix> positions) {
  for (Ix position : positions) {
    index[laneAxis] = position;
    for (const Root &root : roots)
      if (root.joined)
        joinedAt(root, index);
      else if (!scans.dependsOnScan(root.value))
        e.at(root.value, index);
  }
}

Nest::States Nest::row(Index &index) {
  scans.begin();
  const SmallVector<Value> like = scans.with(flat({neutral()}));
  const int64_t usual = e.machine.lanes();
  const SmallVector<Value> results = inOrOver(
      index, like, [&](Index position, int64_t unroll) { return scans.with(flat({rowOf(position, unroll, usual)})); });
  scans.take(results);
  return unflat(results, 1).front();
}

Nest::States Nest::rowOf(Index &index, int64_t maxUnrolled, int64_t usual) {
  scans.begin();
  States states = checksOncePerRow(maxUnrolled) ? whereMasksHoldForRow(index, maxUnrolled) : row(index, maxUnrolled);
  for (auto [entry, state] : llvm::zip(reductions, states))
    if (entry.first->kind == Root::Kind::check)
      state = entry.second.folded(state, usual);
  return states;
}

Nest::States Nest::row(Index &index, int64_t maxUnrolled) {
  const int64_t extent = shape[laneAxis], lanes = e.machine.lanes(), full = extent / lanes;
  const int64_t unroll = checksEachVector() && reductions.empty() ? 1 : maxUnrolled;
  const int64_t looped = vectorsInLoop(full, unroll), copies = std::max<int64_t>(1, std::min(sideBySide, full));
  SmallVector<States> states; // those of the next vector first
  for (int64_t copy = 0; copy < copies; ++copy)
    states.push_back(neutral());
  const bool backwards = scans.isBackwards();
  auto add = [&](Ix position) {
    index[laneAxis] = position;
    step(index, states.front());
    std::rotate(states.begin(), states.begin() + 1, states.end());
  };
  auto addAll = [&](ArrayRef<Ix> positions) {
    const SmallVector<Value> before = scans.with(flat(states));
    const SmallVector<Value> after = whereMasksHold(index, positions, before, [&](ArrayRef<Ix> kept) {
      states = unflat(before, copies);
      scans.take(before);
      if (!checksEachVector())
        readAll(index, kept);
      llvm::for_each(kept, add);
      return scans.with(flat(states));
    });
    states = unflat(after, copies);
    scans.take(after);
  };
  auto inLoop = [&] {
    auto results = loop(looped * lanes, unroll * lanes, scans.with(flat(states)), [&](Ix base, ValueRange carried) {
      states = unflat(carried, copies);
      scans.take(carried);
      Value first = base.at;
      if (backwards)
        first = e.make<arith::SubIOp>(e.constantIndex((looped - unroll) * lanes), first);
      SmallVector<Ix> positions;
      for (int64_t vector = 0; vector < unroll; ++vector)
        positions.push_back(lanesAt(first, vector * lanes, lanes));
      if (backwards)
        std::reverse(positions.begin(), positions.end());
      nextRows.prefetch(e, index, first, unroll * lanes);
      addAll(positions);
      return scans.with(flat(states));
    });
    states = unflat(results, copies);
    scans.take(results);
  };
  SmallVector<Piece> single = remainder(looped * lanes, extent);
  if (backwards)
    std::reverse(single.begin(), single.end());
  if (looped && !backwards)
    inLoop();
  if (const int64_t whole = full - looped; whole > 0 && !masks.empty()) {
    SmallVector<Ix> positions;
    for (const Piece &piece : ArrayRef(single).take_front(whole))
      positions.push_back(lanesAt(e.constantIndex(piece.first), 0, lanes));
    addAll(positions);
    single.erase(single.begin(), single.begin() + whole);
  }
  forEach(single, add);
  if (looped && backwards)
    inLoop();
  const int64_t vectors = llvm::divideCeil(extent, lanes);
  std::rotate(states.begin(), states.end() - vectors % copies, states.end()); // those of the first vector first
  return combined(states);
}

void Nest::rowByRow(Index &index) {
  SmallVector<Value> holds;
  for (auto &[root, reduction] : reductions)
    if (root->kind == Root::Kind::check)
      holds.push_back(reduction.neutral()[0]);
  const int64_t usual = e.machine.lanes();
  holds = inVersions(holds, [&] {
    if (!hasOuterLoops()) // a reduction to a scalar combines both
      return outer(0, index, -1, holds, [&](ValueRange before) { return finishRow(index, row(index), before); });
    return outerInOrOver(-1, holds, [&](Index &position, int64_t unroll, ValueRange before) {
      return finishRow(position, rowOf(position, unroll, usual), before);
    });
  });
  size_t next = 0;
  for (auto &[root, reduction] : reductions)
    if (root->kind == Root::Kind::check)
      branchToFailures(e, cast<tile::CheckOp>(root->op), reduction.acrossLanes({holds[next++]}));
}

SmallVector<Value> Nest::finishRow(const Index &index, const States &states, ValueRange holds) {
  SmallVector<Value> found;
  scans.finish(index);
  for (auto [r, entry] : llvm::enumerate(reductions)) {
    auto &[root, reduction] = entry;
    if (root->kind == Root::Kind::check) {
      found.push_back(reduction.combine({holds[found.size()]}, states[r])[0]);
      continue;
    }
    Value result = reduction.acrossLanes(states[r]);
    if (!root->buffer) {
      scalars.push_back(result);
      continue;
    }
    Index outside(ArrayRef<Ix>(index).drop_back());
    e.storeBuffer(result, root->buffer, outside);
  }
  return found;
}

Nest::States Nest::combined(SmallVector<States> &states) {
  for (size_t width = states.size(); width > 1; width = (width + 1) / 2)
    for (size_t i = 0; i + (width + 1) / 2 < width; ++i)
      for (auto [r, entry] : llvm::enumerate(reductions))
        states[i][r] = entry.second.combine(states[i][r], states[i + (width + 1) / 2][r]);
  return states[0];
}

void emitLoops(ArrayRef<Root> roots, Operation *before, Machine machine, const DenseMap<Value, Value> &buffers,
               ReadTiles *read) {
  SmallVector<Value> results = Nest(roots, before, machine, buffers, read).emit();
  size_t next = 0;
  for (const Root &root : roots)
    if (root.kind == Root::Kind::reduce && !root.buffer)
      root.op->getResult(0).replaceAllUsesWith(results[next++]);
}

} // namespace kiln::lowering::cpu

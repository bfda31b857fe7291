// Loop nests. Two forms:
//
//   rows:     for each row { for each step of 4 vectors { stores, placed tiles, partial reductions }; finish }
//   columns:  for each step of 4 vectors of columns { for each position of the axis { partial reductions }; finish }
//
// Rows that a gather names lie anywhere in memory: four of them take turns, a vector each, and none waits for another.
//
// Where tiles of a nest are masked by a triangle, there are two of the nest: one for when the triangle covers the whole
// tile, without the mask, and one that asks for each vector whether it lies outside, and does there what is left to do
// with a mask that is false.
//
// Where tiles may hang over the ends of their views, there are two of a row as well: one without masks for tiles that
// lie inside, and for the others a short one, a vector a step. Masks cost more than their instructions: AMD's Zen 5
// does not look ahead along memory that is read with a mask.
//
// The last vector of a row that is no multiple of the lanes is peeled; scratch rows are padded, so only views and
// reductions look at its mask.
//
// Scans carry one state along each row or column, whatever else the nest does; one that begins at the end has its nest
// walk backwards.
//
// A check is a reduction of its condition over all rows. Where it fails somewhere, the tile is looked through once more
// behind the nest, element by element, so that the first of several checks tells of its first element, and the rows'
// own loop has neither calls nor branches.

#include "lowering/cpu/Loops.h"
#include "lowering/analysis/Triangles.h"
#include "lowering/cpu/Checks.h"
#include "lowering/cpu/Group.h"
#include "lowering/cpu/Reduction.h"
#include "lowering/cpu/Scan.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// Running results of a row's reductions, each of every fourth vector.
static constexpr int64_t sideBySide = 4;

/// Vectors in a row up to which the reduction of their lanes counts.
static constexpr int64_t longestTogether = 8;

namespace {

class Nest {
public:
  Nest(ArrayRef<Root> roots, Operation *before, Machine machine, const DenseMap<Value, Value> &buffers, ReadTiles *read)
      : roots(roots), e(before->getLoc(), machine, buffers), shape(roots.front().shape()), scans(e, roots) {
    e.levels.push_back({before->getBlock(), before});
    if (!roots.front().isColumns())
      mask = findMask();
    laneAxis = findLaneAxis();
    const bool inLoop = isa<LoopLikeOpInterface>(before->getParentOp());
    if ((readsAnew(read) || inLoop) && paysTwice())
      for (tile::AccessOp access : accessesOf(roots, e))
        inside = e.both(inside, e.liesInside(access));
  }

  /// The results of reductions to scalars.
  SmallVector<Value> emit() {
    Index index(shape.size());
    for (const Root &root : roots)
      if (root.kind == Root::Kind::reduce || root.kind == Root::Kind::check)
        reductions.push_back({&root, Reduction(e, kindOf(root), getElementTypeOrSelf(root.value.getType()))});
    if (roots.front().isColumns())
      outer(0, index, roots.front().axis, {}, [&](ValueRange) {
        return inOrOver(index, {}, [&](Index position, int64_t unroll) -> SmallVector<Value> {
          columns(position, roots.front().axis, unroll);
          return {};
        });
      });
    else if (reducesTogether())
      rowsTogether(index);
    else if (gathersRows())
      rowsAbreast(index);
    else
      rowByRow(index);
    return scalars;
  }

private:
  using States = SmallVector<Reduction::State>; // for each reduction

  /// A loop over [0, to); the body receives the position. Carries `carried`.
  SmallVector<Value> loop(int64_t to, int64_t step, ValueRange carried,
                          function_ref<SmallVector<Value>(Ix, ValueRange)> body) {
    return e.loop(e.constantIndex(0), e.constantIndex(to), step, carried, body);
  }

  /// How the elements of a reduction meet; whether all hold, those of a check.
  static tile::ReduceKind kindOf(const Root &root) {
    auto reduce = dyn_cast<tile::ReduceOp>(root.op);
    return reduce ? reduce.getKind() : tile::ReduceKind::Min;
  }

  static bool namesPositions(tile::AccessOp access) { return access.isLoad() && access.getIndexRank() > 0; }

  /// The dimension that vectors run along: the last. Of a nest of stores the last that is longer than 1.
  int64_t findLaneAxis() {
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    const bool onlyStores = llvm::all_of(roots, [](const Root &root) { return root.kind == Root::Kind::store; });
    if (mask || !onlyStores || llvm::any_of(accessesOf(roots, e), namesPositions))
      return last;
    for (int64_t axis = last; axis >= 0; --axis)
      if (shape[axis] != 1)
        return axis;
    return last;
  }

  /// Loops over every dimension but that of the lanes and `except`. They carry `carried`; their last values.
  SmallVector<Value> outer(size_t axis, Index &index, int64_t except, ValueRange carried,
                           function_ref<SmallVector<Value>(ValueRange)> body) {
    if (axis >= shape.size())
      return body(carried);
    if (static_cast<int64_t>(axis) == except || static_cast<int64_t>(axis) == laneAxis)
      return outer(axis + 1, index, except, carried, body);
    if (shape[axis] == 1) {
      index[axis] = e.fixed(0);
      return outer(axis + 1, index, except, carried, body);
    }
    return loop(shape[axis], 1, carried, [&](Ix position, ValueRange inner) {
      index[axis] = position;
      return outer(axis + 1, index, except, inner, body);
    });
  }

  // --- Tiles that lie inside their views ----------------------------------------------------------------------------

  /// Whether rows are worth the time to compile them twice: those shorter than a vector have masks anyway, a few
  /// vectors cost little with them, and a triangle makes two of the nest already.
  bool paysTwice() const {
    constexpr int64_t fewVectors = 16;
    return !mask && shape[laneAxis] >= e.machine.lanes() && llvm::product_of(shape) >= fewVectors * e.machine.lanes();
  }

  /// Whether the nest loads what no nest before it did: what one did is near, where masks cost their instructions.
  bool readsAnew(ReadTiles *read) {
    bool isNew = !read;
    for (tile::AccessOp access : accessesOf(roots, e))
      if (access.isLoad() && read)
        isNew |= read->insert(access).second;
    return isNew;
  }

  /// What `body` gives, of the types of `like`, for a tile that lies inside its views, and again for one that hangs
  /// over them, where that differs. It gets how many vectors of a row to compute in a step.
  SmallVector<Value> inOrOver(const Index &index, ValueRange like,
                              function_ref<SmallVector<Value>(Index, int64_t unroll)> body) {
    if (!inside)
      return body(index, sideBySide);
    auto here = [&] {
      outermost = e.depth();
      Index kept;
      for (const Ix &position : index)
        kept.push_back(position.at ? e.keptHere(position) : position);
      return kept;
    };
    auto lies = [&] {
      for (tile::AccessOp access : accessesOf(roots, e))
        e.takeInside(access);
      SmallVector<Value> values = body(here(), sideBySide);
      e.inside.clear();
      return values;
    };
    SmallVector<Value> values = e.choose(inside, like.getTypes(), lies, [&] { return body(here(), 1); });
    outermost = 0;
    return values;
  }

  // --- Triangles ----------------------------------------------------------------------------------------------------

  /// A comparison, of the nest's shape, by which some tile of the nest is masked: those inside a triangle are read.
  Value findMask() {
    SmallVector<Value> work;
    for (const Root &root : roots)
      work.push_back(root.value);
    llvm::SmallDenseSet<Value> seen;
    while (!work.empty()) {
      Value tile = work.pop_back_val();
      Operation *op = tile.getDefiningOp();
      if (!seen.insert(tile).second || !op || e.isBuffered(tile) || !isElementwise(op))
        continue;
      if (comparisonOf(tile))
        return tile;
      llvm::append_range(work, op->getOperands());
    }
    return {};
  }

  /// Emits `body`, which gives values of the types of `like`, twice where there is a mask: once for when the triangle
  /// covers the whole tile.
  SmallVector<Value> inVersions(ValueRange like, function_ref<SmallVector<Value>()> body) {
    if (!mask)
      return body();
    triangle = *comparisonOf(mask);
    Value last = e.constantIndex((triangle.transposed ? shape[0] : shape[1]) - 1 - triangle.offset);
    Value coversAll = e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, last, e.asIndex(triangle.limit));
    return e.choose(coversAll, like.getTypes(), [&] { return assuming(true, body); }, body);
  }

  SmallVector<Value> assuming(bool inside, function_ref<SmallVector<Value>()> body) {
    e.assumed[mask] = inside;
    SmallVector<Value> values = body();
    e.assumed.erase(mask);
    return values;
  }

  /// Whether the code now emitted asks for each vector whether it lies outside.
  bool asksForEach() { return mask && !e.assumed.contains(mask); }

  /// Whether all lanes at `index` lie outside the triangle.
  Value liesOutside(const Index &index) {
    const auto [row, column] = std::pair(index[0].at, index[1].at);
    Value distance = triangle.transposed ? e.make<arith::SubIOp>(row, column) : e.make<arith::SubIOp>(column, row);
    const int64_t nearest = triangle.transposed ? index[1].valid - 1 : 0; // lane, to the edge
    Value least = e.make<arith::SubIOp>(distance, e.constantIndex(nearest + triangle.offset));
    return e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, least, e.asIndex(triangle.limit));
  }

  /// A step, or what is left of it outside the triangle.
  void step(const Index &index, States &states) {
    if (!asksForEach())
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

  // --- Rows and columns ---------------------------------------------------------------------------------------------

  States neutral() {
    States states;
    for (auto &[root, reduction] : reductions)
      states.push_back(reduction.neutral());
    return states;
  }

  static SmallVector<Value> flat(const SmallVector<States> &all) {
    SmallVector<Value> values;
    for (const States &states : all)
      for (const Reduction::State &state : states)
        llvm::append_range(values, state);
    return values;
  }

  SmallVector<States> unflat(ValueRange values, int64_t copies) {
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

  /// All roots at one position; reductions go into `states`.
  void all(const Index &index, States &states) {
    size_t next = 0;
    for (const Root &root : roots) {
      Value value = e.at(root.value, index);
      switch (root.kind) {
      case Root::Kind::store:
        e.store(value, cast<tile::AccessOp>(root.op), index);
        break;
      case Root::Kind::place:
        e.place(value, root.value, root.buffer, index);
        e.remember(root.value, index, value);
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

  /// One position along the last dimension, a whole vector or the peeled rest.
  Ix lanesAt(Value base, int64_t offset, int64_t valid) {
    Value at = offset ? e.make<arith::AddIOp>(base, e.constantIndex(offset)) : base;
    return {at, std::max(e.depthOf(at), outermost), true, valid};
  }

  /// How many of `full` vectors a loop of `unroll` vectors a step computes; the others stand behind it.
  static int64_t loopedOf(int64_t full, int64_t unroll) { return full / unroll >= 2 ? full / unroll * unroll : 0; }

  /// Evaluates all roots at all positions, so that what the nest reads there comes before what it writes: a nest's
  /// roots write nothing that it reads at another position. LLVM, which does not know that, keeps the order.
  void readAll(Index &index, ArrayRef<Ix> positions) {
    for (Ix position : positions) {
      index[laneAxis] = position;
      for (const Root &root : roots)
        if (!scans.isBehind(root.value))
          e.at(root.value, index);
    }
  }

  /// The states of its reductions.
  States row(Index &index) {
    scans.begin();
    const SmallVector<Value> like = scans.with(flat({neutral()}));
    auto rowAt = [&](Index position, int64_t unroll) {
      scans.begin();
      const States states = row(position, unroll);
      return scans.with(flat({states}));
    };
    const SmallVector<Value> results = inOrOver(index, like, rowAt);
    scans.take(results);
    return unflat(results, 1).front();
  }

  States row(Index &index, int64_t mostUnrolled) {
    const int64_t extent = shape[laneAxis], lanes = e.machine.lanes(), full = extent / lanes;
    const int64_t unroll = asksForEach() && reductions.empty() ? 1 : mostUnrolled;
    const int64_t looped = loopedOf(full, unroll), copies = std::max<int64_t>(1, std::min(sideBySide, full));
    SmallVector<States> states; // the next vector's first
    for (int64_t copy = 0; copy < copies; ++copy)
      states.push_back(neutral());
    const bool backwards = scans.isBackwards();
    auto add = [&](Ix position) {
      index[laneAxis] = position;
      step(index, states.front());
      std::rotate(states.begin(), states.begin() + 1, states.end());
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
        if (!asksForEach())
          readAll(index, positions);
        llvm::for_each(positions, add);
        return scans.with(flat(states));
      });
      states = unflat(results, copies);
      scans.take(results);
    };
    SmallVector<std::pair<int64_t, int64_t>> single; // those behind the loop: first positions, and how many are valid
    for (int64_t vector = looped; vector < full; ++vector)
      single.push_back({vector * lanes, lanes});
    if (extent % lanes)
      single.push_back({full * lanes, extent % lanes});
    if (backwards)
      std::reverse(single.begin(), single.end());
    if (looped && !backwards)
      inLoop();
    for (auto [first, valid] : single)
      add(lanesAt(e.constantIndex(first), 0, valid));
    if (looped && backwards)
      inLoop();
    const int64_t vectors = llvm::divideCeil(extent, lanes);
    std::rotate(states.begin(), states.end() - vectors % copies, states.end()); // the first vector's first
    return combined(states);
  }

  /// Whether the nest gathers rows, which lie anywhere.
  bool gathersRows() {
    return reductions.empty() && scans.empty() && !mask && shape.size() == 2 && shape[0] % sideBySide == 0 &&
           llvm::any_of(accessesOf(roots, e), [](tile::AccessOp access) {
             return access.isLoad() && access.getIndexRank() == 1 && access.getTile().getType().getRank() > 1;
           });
  }

  /// A vector of each of four rows a step: none waits for the memory of another. With masks row after row.
  void rowsAbreast(Index &index) {
    auto four = [&](Index first, int64_t abreast) -> SmallVector<Value> {
      if (abreast > 1)
        vectorsOfRows(first[0], abreast);
      else
        e.loop(e.constantIndex(0), e.constantIndex(sideBySide), 1,
               [&](Ix row) { vectorsOfRows(e.along(e.make<arith::AddIOp>(first[0].at, row.at)), 1); });
      return {};
    };
    e.loop(e.constantIndex(0), e.constantIndex(shape[0]), sideBySide, [&](Ix first) {
      index[0] = first;
      inOrOver(index, {}, four);
    });
  }

  /// All roots in `count` rows, a vector of each at a time.
  void vectorsOfRows(Ix first, int64_t count) {
    const int64_t extent = shape[1], lanes = e.machine.lanes(), full = extent / lanes * lanes;
    SmallVector<Ix> rows = {first};
    for (int64_t row = 1; row < count; ++row)
      rows.push_back(e.along(e.make<arith::AddIOp>(first.at, e.constantIndex(row))));
    auto step = [&](Ix columns) {
      for (Ix row : rows)
        for (const Root &root : roots)
          e.at(root.value, {row, columns});
      States none;
      for (Ix row : rows)
        all({row, columns}, none);
    };
    if (full)
      e.loop(e.constantIndex(0), e.constantIndex(full), lanes, [&](Ix base) { step(lanesAt(base.at, 0, lanes)); });
    if (extent > full)
      step(lanesAt(e.constantIndex(full), 0, extent - full));
  }

  /// Whether the lanes of many rows are reduced at once: where there are many and short ones.
  bool reducesTogether() {
    return !reductions.empty() && scans.empty() && shape.size() == 2 && shape[0] >= e.machine.lanes() &&
           shape[1] <= longestTogether * e.machine.lanes() &&
           llvm::all_of(reductions, [](auto &entry) { return entry.first->buffer && !entry.second.hasIndex(); });
  }

  /// As many rows as there are lanes leave a vector each in memory, and are then reduced together.
  void rowsTogether(Index &index) {
    const int64_t lanes = e.machine.lanes();
    SmallVector<Value> left;
    e.moveTo(0);
    for (auto &[root, reduction] : reductions)
      left.push_back(memref::AllocaOp::create(
          e.builder, e.loc, MemRefType::get({lanes, lanes}, getElementTypeOrSelf(reduction.neutral()[0].getType())),
          e.builder.getI64IntegerAttr(64)));
    e.loop(e.constantIndex(0), e.constantIndex(shape[0]), lanes, [&](Ix first) {
      Value end = e.least(e.make<arith::AddIOp>(first.at, e.constantIndex(lanes)), e.constantIndex(shape[0]));
      auto leaveRow = [&](Ix position) {
        index[0] = position;
        const States state = row(index);
        Value number = e.make<arith::SubIOp>(position.at, first.at);
        for (auto [buffer, vector] : llvm::zip(left, state))
          e.storeBuffer(vector[0], buffer, {e.along(number), e.lanesFrom(e.constantIndex(0), lanes)});
      };
      inVersions({}, [&]() -> SmallVector<Value> {
        e.loop(first.at, end, 1, leaveRow);
        return {};
      });
      for (auto [buffer, entry] : llvm::zip(left, reductions)) {
        SmallVector<Value> states;
        for (int64_t i = 0; i < lanes; ++i) { // those past the last row are read by nobody
          SmallVector<Value> at = {e.constantIndex(i), e.constantIndex(0)};
          auto type = e.vectorOf(getElementTypeOrSelf(buffer.getType()));
          e.moveTo(e.depth());
          states.push_back(e.noted(vector::LoadOp::create(e.builder, e.loc, type, buffer, at), e.depth()));
        }
        Value results = entry.second.acrossLanesOfAll(states);
        e.storeBuffer(results, entry.first->buffer, {e.lanesFrom(first.at, lanes)});
      }
    });
  }

  /// Row after row; whether all elements hold that checks ask for goes along.
  void rowByRow(Index &index) {
    SmallVector<Value> holds;
    for (auto &[root, reduction] : reductions)
      if (root->kind == Root::Kind::check)
        holds.push_back(reduction.neutral()[0]);
    holds = inVersions(holds, [&] {
      return outer(0, index, -1, holds, [&](ValueRange before) { return finishRow(index, row(index), before); });
    });
    size_t next = 0;
    for (auto &[root, reduction] : reductions)
      if (root->kind == Root::Kind::check)
        branchToFailures(e, cast<tile::CheckOp>(root->op), reduction.acrossLanes({holds[next++]}));
  }

  /// Emits the stores of a row's reductions. What the checks have found so far: `holds` and the row's.
  SmallVector<Value> finishRow(const Index &index, const States &states, ValueRange holds) {
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

  /// One state for each reduction.
  States combined(SmallVector<States> &states) {
    for (size_t width = states.size(); width > 1; width = (width + 1) / 2)
      for (size_t i = 0; i + (width + 1) / 2 < width; ++i)
        for (auto [r, entry] : llvm::enumerate(reductions))
          states[i][r] = entry.second.combine(states[i][r], states[i + (width + 1) / 2][r]);
    return states[0];
  }

  void columns(Index &index, int64_t axis, int64_t unroll) {
    const int64_t extent = shape.back(), lanes = e.machine.lanes(), full = extent / lanes;
    const int64_t looped = loopedOf(full, unroll);
    auto block = [&](Value base, int64_t copies, int64_t valid) {
      SmallVector<States> states;
      for (int64_t copy = 0; copy < copies; ++copy)
        states.push_back(neutral());
      SmallVector<Ix> positions;
      for (int64_t copy = 0; copy < copies; ++copy)
        positions.push_back(lanesAt(base, copy * lanes, valid));
      scans.begin();
      SmallVector<Value> carried = flat(states);
      for (int64_t copy = 0; copy < copies; ++copy)
        carried = scans.with(std::move(carried));
      // The carries of a block of columns, behind the states and those of the blocks before it.
      const auto takeCarries = [&](ValueRange values, int64_t copy) {
        scans.take(values.drop_back((copies - 1 - copy) * scans.width()));
      };
      auto results = loop(shape[axis], 1, carried, [&](Ix position, ValueRange before) {
        SmallVector<States> inner = unflat(before, copies);
        SmallVector<Value> behind;
        if (scans.isBackwards())
          position = e.along(e.make<arith::SubIOp>(e.constantIndex(shape[axis] - 1), position.at));
        index[axis] = position;
        if (!scans.empty())
          readAll(index, positions);
        for (int64_t copy = 0; copy < copies; ++copy) {
          index.back() = positions[copy];
          takeCarries(before, copy);
          step(index, inner[copy]);
          behind = scans.with(std::move(behind));
        }
        SmallVector<Value> after = flat(inner);
        llvm::append_range(after, behind);
        return after;
      });
      states = unflat(results, copies);
      for (int64_t copy = 0; copy < copies && !scans.empty(); ++copy) {
        index.back() = positions[copy];
        takeCarries(results, copy);
        scans.finish(index);
      }
      for (int64_t copy = 0; copy < copies; ++copy)
        for (auto [r, entry] : llvm::enumerate(reductions)) {
          Index outside(index);
          outside.back() = positions[copy];
          outside.erase(outside.begin() + axis);
          e.storeBuffer(entry.second.lanes(states[copy][r]), entry.first->buffer, outside);
        }
    };
    if (looped)
      e.loop(e.constantIndex(0), e.constantIndex(looped * lanes), unroll * lanes,
             [&](Ix base) { block(base.at, unroll, lanes); });
    if (full > looped)
      block(e.constantIndex(looped * lanes), full - looped, lanes);
    if (extent % lanes)
      block(e.constantIndex(full * lanes), 1, extent % lanes);
  }

  ArrayRef<Root> roots;
  Evaluator e;
  ArrayRef<int64_t> shape;
  SmallVector<std::pair<const Root *, Reduction>> reductions;
  Scans scans;
  SmallVector<Value> scalars; // results of reductions to them
  Value inside;               // i1: all that the nest accesses lies inside its views; null: it does, or it is all one
  int64_t laneAxis = 0;       // the dimension that vectors run along
  int outermost = 0;          // the loop level from which on positions count as known
  Value mask;                 // the tile that says what lies inside `triangle`, if there is one
  Triangle triangle;
};

} // namespace

void emitLoops(ArrayRef<Root> roots, Operation *before, Machine machine, const DenseMap<Value, Value> &buffers,
               ReadTiles *read) {
  SmallVector<Value> results = Nest(roots, before, machine, buffers, read).emit();
  size_t next = 0;
  for (const Root &root : roots)
    if (root.kind == Root::Kind::reduce && !root.buffer)
      root.op->getResult(0).replaceAllUsesWith(results[next++]);
}

} // namespace kiln::lowering::cpu

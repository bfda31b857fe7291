// Loop nests. Two forms:
//
//   rows:     for each row { for each step of 4 vectors { stores, placed tiles, partial reductions }; finish }
//   columns:  for each step of 4 vectors of columns { for each position of the axis { partial reductions }; finish }
//
// The last vector of a row that is no multiple of the lanes is peeled; scratch rows are padded, so only views and
// reductions look at its mask.

#include "lowering/cpu/Loops.h"
#include "lowering/cpu/Reduction.h"

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

static constexpr int64_t unroll = 4;

namespace {

class Nest {
public:
  Nest(ArrayRef<Root> roots, Operation *before, Machine machine, const DenseMap<Value, Value> &buffers)
      : roots(roots), e(before->getLoc(), machine, buffers), shape(roots.front().shape()) {
    e.levels.push_back({before->getBlock(), before});
  }

  void emit() {
    Index index(shape.size());
    for (const Root &root : roots)
      if (root.kind == Root::Kind::reduce)
        reductions.push_back(
            {&root, Reduction(e, cast<tile::ReduceOp>(root.op).getKind(), getElementTypeOrSelf(root.value.getType()))});
    if (roots.front().isColumns())
      outer(0, index, roots.front().axis, [&] { columns(index, roots.front().axis); });
    else
      outer(0, index, -1, [&] { row(index); });
  }

private:
  using States = SmallVector<Reduction::State>; // for each reduction

  /// A loop over [0, to); the body receives the position. Carries `carried`.
  SmallVector<Value> loop(int64_t to, int64_t step, ValueRange carried,
                          function_ref<SmallVector<Value>(Ix, ValueRange)> body) {
    return e.loop(e.constantIndex(0), e.constantIndex(to), step, carried, body);
  }

  /// Loops over every dimension but the last and `except`.
  void outer(size_t axis, Index &index, int64_t except, function_ref<void()> body) {
    if (axis + 1 >= shape.size())
      return body();
    if (static_cast<int64_t>(axis) == except)
      return outer(axis + 1, index, except, body);
    if (shape[axis] == 1) {
      index[axis] = e.fixed(0);
      return outer(axis + 1, index, except, body);
    }
    e.loop(e.constantIndex(0), e.constantIndex(shape[axis]), 1, [&](Ix position) {
      index[axis] = position;
      outer(axis + 1, index, except, body);
    });
  }

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
        size_t count = cast<tile::ReduceOp>(root->op).getKind() == tile::ReduceKind::ArgMax ? 2 : 1;
        states.push_back(Reduction::State(values.slice(next, count)));
        next += count;
      }
    return all;
  }

  /// All roots at one position; reductions go into `states`.
  void step(const Index &index, States &states) {
    size_t next = 0;
    for (const Root &root : roots) {
      Value value = e.at(root.value, index);
      switch (root.kind) {
      case Root::Kind::store:
        e.store(value, cast<tile::StoreOp>(root.op), index);
        break;
      case Root::Kind::scatter:
        e.scatter(value, cast<tile::ScatterOp>(root.op), index);
        break;
      case Root::Kind::place:
        e.storeBuffer(value, root.buffer, index);
        e.remember(root.value, index, value);
        break;
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
    return {at, e.depthOf(at), true, valid};
  }

  void row(Index &index) {
    const int64_t extent = shape.back(), lanes = e.machine.lanes(), full = extent / lanes;
    const int64_t looped = full / unroll >= 2 ? full / unroll * unroll : 0;
    const int64_t copies = std::max<int64_t>(1, std::min(unroll, full));
    SmallVector<States> states;
    for (int64_t copy = 0; copy < copies; ++copy)
      states.push_back(neutral());
    if (looped) {
      auto results = loop(looped * lanes, unroll * lanes, flat(states), [&](Ix base, ValueRange carried) {
        SmallVector<States> inner = unflat(carried, copies);
        for (int64_t copy = 0; copy < unroll; ++copy) {
          index.back() = lanesAt(base.at, copy * lanes, lanes);
          step(index, inner[copy]);
        }
        return flat(inner);
      });
      states = unflat(results, copies);
    }
    for (int64_t vector = looped; vector < full; ++vector) {
      index.back() = lanesAt(e.constantIndex(vector * lanes), 0, lanes);
      step(index, states[vector % copies]);
    }
    if (extent % lanes) {
      index.back() = lanesAt(e.constantIndex(full * lanes), 0, extent % lanes);
      step(index, states[full % copies]);
    }
    finishRow(index, states);
  }

  void finishRow(const Index &index, SmallVector<States> &states) {
    for (size_t width = states.size(); width > 1; width = (width + 1) / 2)
      for (size_t i = 0; i + (width + 1) / 2 < width; ++i)
        for (auto [r, entry] : llvm::enumerate(reductions))
          states[i][r] = entry.second.combine(states[i][r], states[i + (width + 1) / 2][r]);
    for (auto [r, entry] : llvm::enumerate(reductions)) {
      auto &[root, reduction] = entry;
      Value result = reduction.acrossLanes(states[0][r]);
      if (!root->buffer) {
        root->op->getResult(0).replaceAllUsesWith(result);
        continue;
      }
      Index outside(ArrayRef<Ix>(index).drop_back());
      e.storeBuffer(result, root->buffer, outside);
    }
  }

  void columns(Index &index, int64_t axis) {
    const int64_t extent = shape.back(), lanes = e.machine.lanes(), full = extent / lanes;
    const int64_t looped = full / unroll >= 2 ? full / unroll * unroll : 0;
    auto block = [&](Value base, int64_t copies, int64_t valid) {
      SmallVector<States> states;
      for (int64_t copy = 0; copy < copies; ++copy)
        states.push_back(neutral());
      SmallVector<Ix> positions;
      for (int64_t copy = 0; copy < copies; ++copy)
        positions.push_back(lanesAt(base, copy * lanes, valid));
      auto results = loop(shape[axis], 1, flat(states), [&](Ix position, ValueRange carried) {
        SmallVector<States> inner = unflat(carried, copies);
        for (int64_t copy = 0; copy < copies; ++copy) {
          index.back() = positions[copy];
          index[axis] = position;
          step(index, inner[copy]);
        }
        return flat(inner);
      });
      states = unflat(results, copies);
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
};

} // namespace

void emitLoops(ArrayRef<Root> roots, Operation *before, Machine machine, const DenseMap<Value, Value> &buffers) {
  Nest(roots, before, machine, buffers).emit();
}

} // namespace kiln::lowering::cpu

// Sorts integers in scratch memory by bitonic networks of native vectors. Loops run over the stages of the network, so
// that the code size does not depend on the extent.
//
// The extent is padded to a power of two with the greatest keys. Along rows, each vector is sorted first; then sorted
// blocks are merged in pairs of doubling length. To merge two blocks, the first is compared with the reversed second,
// so that the smaller keys are in the first half. Each half is then sorted by comparing keys half its extent apart, a
// quarter, and so on; within vectors, by shuffles. Along another axis, a vector has one position of several columns.
//
// For the smallest few elements of long rows (`few`), the best so far are kept, sorted. A block without a key below the
// last of these is skipped; any other is sorted and merged with them.

#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/LowerTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::cpu {

namespace {

/// A vector of keys, and one of ties if there are any.
using State = SmallVector<Value, 2>;

/// The network on lines of buffers: one of keys, and optionally one of ties.
class Network {
public:
  /// Lines run along `axis`; `isRow`: vectors do so, too.
  Network(OpBuilder &b, Location loc, int64_t lanes, ArrayRef<Value> arrays, int64_t axis, bool isRow)
      : b(b), loc(loc), lanes(lanes), arrays(arrays), axis(axis), isRow(isRow), unit(isRow ? lanes : 1) {}

  /// The beginning of the line.
  SmallVector<Value> line;

  // --- One element or vector
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  State load(Value position) { return loadFrom(arrays, position); }
  State loadFrom(ArrayRef<Value> from, Value position) {
    State state;
    for (Value array : from)
      state.push_back(vector::LoadOp::create(b, loc, vectorOf(array), array, at(position)));
    return state;
  }
  void store(const State &state, Value position) {
    for (auto [value, array] : llvm::zip_equal(state, arrays))
      vector::StoreOp::create(b, loc, value, array, at(position));
  }
  /// A vector of the key that is ordered after all others.
  State greatest() {
    State state;
    for (Value array : arrays) {
      const VectorType type = vectorOf(array);
      const Type element = type.getElementType();
      const Attribute most = b.getIntegerAttr(element, APInt::getSignedMaxValue(element.getIntOrFloatBitWidth()));
      state.push_back(arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, most)));
    }
    return state;
  }
  /// The key at a position of a row, broadcast to all lanes.
  Value broadcastKey(int64_t position) {
    const Value key = memref::LoadOp::create(b, loc, arrays[0], at(index(position)));
    return vector::BroadcastOp::create(b, loc, vectorOf(arrays[0]), key);
  }
  SmallVector<Value> at(Value position) {
    SmallVector<Value> indices(line);
    indices[axis] = position;
    return indices;
  }
  void loop(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
    auto made = scf::ForOp::create(b, loc, from, to, index(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    body(made.getInductionVar());
  }

  /// Sorts `count` positions from `base` on, a power of two and a multiple of the unit.
  void sort(Value base, int64_t count);
  /// Merges two consecutive sorted blocks of `count` keys; the smallest are left in the first.
  void mergeSmallest(int64_t count);
  /// Fills [from, to) with the greatest key; `to` is a multiple of the unit.
  void pad(int64_t from, int64_t to);

private:
  template <class Op, class... Args> Value make(Args &&...args) { return Op::create(b, loc, args...); }
  VectorType vectorOf(Value array) {
    return VectorType::get({lanes}, cast<MemRefType>(array.getType()).getElementType());
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) { return make<arith::CmpIOp>(predicate, x, y); }
  Value isBefore(const State &x, const State &y) {
    const Value less = compare(arith::CmpIPredicate::slt, x[0], y[0]);
    if (x.size() == 1)
      return less;
    const Value equal = compare(arith::CmpIPredicate::eq, x[0], y[0]),
                tie = compare(arith::CmpIPredicate::slt, x[1], y[1]);
    return make<arith::OrIOp>(less, make<arith::AndIOp>(equal, tie));
  }
  State choose(Value condition, const State &x, const State &y) {
    State state;
    for (auto [mine, other] : llvm::zip_equal(x, y))
      state.push_back(make<arith::SelectOp>(condition, mine, other));
    return state;
  }
  /// For each lane, the smaller and the greater of two keys.
  std::pair<State, State> inOrder(const State &x, const State &y) {
    if (x.size() == 1)
      return {{make<arith::MinSIOp>(x[0], y[0])}, {make<arith::MaxSIOp>(x[0], y[0])}};
    const Value before = isBefore(x, y);
    return {choose(before, x, y), choose(before, y, x)};
  }
  State shuffled(const State &state, function_ref<int64_t(int64_t)> from) {
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < lanes; ++lane)
      order.push_back(from(lane));
    State result;
    for (Value value : state)
      result.push_back(make<vector::ShuffleOp>(value, value, order));
    return result;
  }
  State reversed(const State &state) {
    return isRow ? shuffled(state, [&](int64_t lane) { return lanes - 1 - lane; }) : state;
  }
  /// Orders each pair of lanes whose numbers differ exactly in the bits of `mask`; `top` is its highest bit.
  State withinLanes(const State &state, int64_t mask, int64_t top) {
    const State other = shuffled(state, [&](int64_t lane) { return lane ^ mask; });
    const auto [small, great] = inOrder(state, other);
    SmallVector<bool> isLower;
    for (int64_t lane = 0; lane < lanes; ++lane)
      isLower.push_back(!(lane & top));
    const auto type = VectorType::get({lanes}, b.getI1Type());
    return choose(make<arith::ConstantOp>(DenseElementsAttr::get(type, ArrayRef<bool>(isLower))), small, great);
  }
  State cleaned(State state, int64_t from) {
    for (int64_t distance = from; distance > 0; distance /= 2)
      state = withinLanes(state, distance, distance);
    return state;
  }
  /// Applies `change` to each vector of `count` keys of a row. Does nothing along another axis.
  void everyVector(Value base, int64_t count, function_ref<State(State)> change) {
    if (!isRow)
      return;
    loop(index(0), index(count), unit, [&](Value offset) {
      const Value position = make<arith::AddIOp>(base, offset);
      store(change(load(position)), position);
    });
  }
  void comparePairs(Value base, int64_t count, Value half, bool isReversed);
  void halve(Value base, int64_t count, Value half, Value times);

  OpBuilder &b;
  const Location loc;
  const int64_t lanes;
  const ArrayRef<Value> arrays;
  const int64_t axis;
  const bool isRow;
  const int64_t unit;
};

/// Compares the first half of each block of 2 · `half` with the second one, or with the reversed second one.
void Network::comparePairs(Value base, int64_t count, Value half, bool isReversed) {
  const Value mask = make<arith::SubIOp>(half, index(1));
  loop(index(0), index(count / 2), unit, [&](Value number) {
    const Value within = make<arith::AndIOp>(number, mask);
    const Value before = make<arith::SubIOp>(number, within); // in the first halves
    const Value begin = make<arith::AddIOp>(base, make<arith::AddIOp>(before, before));
    const Value first = make<arith::AddIOp>(begin, within);
    Value second = make<arith::AddIOp>(first, half);
    if (isReversed) {
      const Value end = make<arith::AddIOp>(begin, make<arith::AddIOp>(half, half));
      second = make<arith::SubIOp>(end, make<arith::AddIOp>(within, index(unit)));
    }
    const State other = load(second);
    const auto [small, great] = inOrder(load(first), isReversed ? reversed(other) : other);
    store(small, first);
    store(isReversed ? reversed(great) : great, second);
  });
}

/// Compares keys at distance `half` / 2, then at half of that, and so on, `times` times.
void Network::halve(Value base, int64_t count, Value half, Value times) {
  loop(index(0), times, 1, [&](Value time) {
    const Value by = make<arith::AddIOp>(time, index(1));
    comparePairs(base, count, make<arith::ShRUIOp>(half, by), /*isReversed=*/false);
  });
}

void Network::sort(Value base, int64_t count) {
  everyVector(base, count, [&](State state) {
    for (int64_t extent = 2; extent <= lanes; extent *= 2)
      state = cleaned(withinLanes(state, extent - 1, extent / 2), extent / 4);
    return state;
  });
  const auto levels = static_cast<int64_t>(llvm::Log2_64(count / unit));
  if (levels == 0)
    return;
  loop(index(0), index(levels), 1, [&](Value level) {
    const Value half = make<arith::ShLIOp>(index(unit), level);
    comparePairs(base, count, half, /*isReversed=*/true);
    halve(base, count, half, level);
    everyVector(base, count, [&](const State &state) { return cleaned(state, lanes / 2); });
  });
}

void Network::mergeSmallest(int64_t count) {
  loop(index(0), index(count), unit, [&](Value first) {
    const Value second = make<arith::SubIOp>(index(2 * count - unit), first);
    store(inOrder(load(first), reversed(load(second))).first, first);
  });
  halve(index(0), count, index(count), index(llvm::Log2_64(count / unit)));
  everyVector(index(0), count, [&](const State &state) { return cleaned(state, lanes / 2); });
}

void Network::pad(int64_t from, int64_t to) {
  if (const int64_t valid = from % unit) {
    SmallVector<bool> isElement;
    for (int64_t lane = 0; lane < lanes; ++lane)
      isElement.push_back(lane < valid);
    const auto type = VectorType::get({lanes}, b.getI1Type());
    const Value position = index(from - valid);
    const Value mask = make<arith::ConstantOp>(DenseElementsAttr::get(type, ArrayRef<bool>(isElement)));
    store(choose(mask, load(position), greatest()), position);
    from += unit - valid;
  }
  if (from < to)
    loop(index(from), index(to), unit, [&](Value position) { store(greatest(), position); });
}

/// Lowers one sort: its operands are copied to buffers, which are sorted in place.
class Sorter {
public:
  Sorter(tile::SortOp op, Machine machine, DenseMap<Value, Value> &buffers)
      : op(op), machine(machine), buffers(buffers), b(op), loc(op.getLoc()), axis(static_cast<int64_t>(op.getAxis())),
        isRow(axis == op.getSource().getType().getRank() - 1), extent(op.getExtent()), count(op.getCount()) {}

  void lower() {
    SmallVector<Value> sources = {op.getSource()}, results = {op.getResult()};
    if (op.getTies()) {
      sources.push_back(op.getTies());
      results.push_back(op.getPositions());
    }
    const auto whole = static_cast<int64_t>(llvm::PowerOf2Ceil(extent)), lanes = machine.lanes();
    few = std::max(static_cast<int64_t>(llvm::PowerOf2Ceil(count)), 2 * lanes);
    const bool isFew = isRow && 4 * few <= extent;
    const int64_t padded = isFew ? llvm::divideCeil(extent, few) * few : isRow ? std::max(whole, lanes) : whole;
    SmallVector<Value> arrays = place(sources, padded), best;
    if (isFew) {
      for (Value source : sources)
        best.push_back(allocate(source, 2 * few));
      Network network(b, loc, lanes, best, axis, isRow), all(b, loc, lanes, arrays, axis, isRow);
      forLines(network, [&] { selectFew(network, all, arrays, padded); });
      arrays = best;
    } else {
      Network network(b, loc, lanes, arrays, axis, isRow);
      forLines(network, [&] {
        network.pad(extent, padded);
        network.sort(network.index(0), padded);
      });
    }
    for (auto [result, array] : llvm::zip_equal(results, arrays))
      buffers[result] = array;
  }

private:
  Value allocate(Value tile, int64_t along) {
    SmallVector<int64_t> shape(tile::shapeOf(tile.getType()));
    shape[axis] = along;
    b.setInsertionPoint(op);
    return allocateBuffer(b, loc, RankedTensorType::get(shape, getElementTypeOrSelf(tile)), machine);
  }
  SmallVector<Value> place(ArrayRef<Value> sources, int64_t along) {
    SmallVector<Value> arrays;
    SmallVector<Root> roots;
    for (Value source : sources) {
      arrays.push_back(allocate(source, along));
      roots.push_back(Root{Root::Kind::place, op, source, arrays.back(), -1});
    }
    emitLoops(roots, op, machine, buffers);
    b.setInsertionPoint(op);
    return arrays;
  }
  /// Loops over all lines; along columns, over vectors of lines.
  void forLines(Network &network, function_ref<void()> body) {
    const ArrayRef<int64_t> shape = op.getSource().getType().getShape();
    network.line.assign(shape.size(), Value());
    b.setInsertionPoint(op);
    std::function<void(size_t)> nest = [&](size_t dim) {
      if (dim == shape.size())
        return body();
      if (static_cast<int64_t>(dim) == axis)
        return nest(dim + 1);
      const bool isLanes = !isRow && dim == shape.size() - 1;
      network.loop(network.index(0), network.index(shape[dim]), isLanes ? machine.lanes() : 1, [&](Value position) {
        network.line[dim] = position;
        nest(dim + 1);
      });
    };
    nest(0);
  }
  void selectFew(Network &network, Network &all, ArrayRef<Value> arrays, int64_t padded);

  tile::SortOp op;
  const Machine machine;
  DenseMap<Value, Value> &buffers;
  OpBuilder b;
  const Location loc;
  const int64_t axis;
  const bool isRow;
  const int64_t extent, count;
  int64_t few = 0; // number of elements of a block, and of the best
};

/// The smallest keys of one line. The last one is the bound: others must be below it, or not above it if ties decide.
void Sorter::selectFew(Network &network, Network &all, ArrayRef<Value> arrays, int64_t padded) {
  all.line = network.line;
  all.pad(extent, padded);
  network.pad(0, few);
  const int64_t lanes = machine.lanes();
  const auto loadBound = [&] { return network.broadcastKey(count - 1); };
  const Value first = loadBound();
  const auto below = arrays.size() > 1 ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt;
  auto blocks = scf::ForOp::create(b, loc, network.index(0), network.index(padded), network.index(few), first);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  const Value bound = blocks.getRegionIterArg(0);
  SmallVector<State> block;
  Value any;
  for (int64_t offset = 0; offset < few; offset += lanes) {
    const Value position = arith::AddIOp::create(b, loc, blocks.getInductionVar(), network.index(offset));
    block.push_back(all.loadFrom(arrays, position));
    const Value is = arith::CmpIOp::create(b, loc, below, block.back()[0], bound);
    any = any ? arith::OrIOp::create(b, loc, any, is).getResult() : is;
  }
  const Value found = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, any);
  auto branch = scf::IfOp::create(b, loc, TypeRange(bound.getType()), found, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto [number, state] : llvm::enumerate(block))
      network.store(state, network.index(few + static_cast<int64_t>(number) * lanes));
    network.sort(network.index(few), few);
    network.mergeSmallest(few);
    scf::YieldOp::create(b, loc, loadBound());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, bound);
  }
  scf::YieldOp::create(b, loc, branch.getResults());
}

} // namespace

static void lowerSort(tile::SortOp op, Machine machine, DenseMap<Value, Value> &buffers) {
  Sorter(op, machine, buffers).lower();
}

// --- Gathers within a tile, and histograms ---------------------------------------------------------------------------

// Gathers along an axis, one element at a time, and histograms.
//
// A histogram has four tables, each for every fourth element, so that equal adjacent elements do not depend on each
// other. Ignored elements are counted in an extra bin after the last.

static void lowerTake(tile::TakeOp op, Machine machine, DenseMap<Value, Value> &buffers) {
  OpBuilder builder(op);
  const RankedTensorType type = op.getType();
  const Value buffer = allocateBuffer(builder, op.getLoc(), type, machine);
  Evaluator e(op.getLoc(), machine, buffers);
  e.levels.push_back({op->getBlock(), op});
  const Value extent = e.constantIndex(op.getSource().getType().getDimSize(op.getAxis()));
  Index index;
  std::function<void()> nest = [&] {
    if (static_cast<int64_t>(index.size()) < type.getRank()) {
      e.loop(e.constantIndex(0), e.constantIndex(type.getDimSize(index.size())), 1, [&](Ix position) {
        index.push_back(position);
        nest();
        index.pop_back();
      });
      return;
    }
    const Value place = e.make<arith::IndexCastOp>(e.builder.getIndexType(), e.at(op.getIndex(), index));
    const Value within = e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, place, extent);
    Index from(index);
    from[op.getAxis()] = e.along(e.make<arith::SelectOp>(within, place, e.constantIndex(0)));
    const Value taken = e.at(op.getSource(), from);
    const Value zero = e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(type.getElementType())));
    e.storeBuffer(e.make<arith::SelectOp>(within, taken, zero), buffer, index);
  };
  nest();
  buffers[op.getResult()] = buffer;
}

namespace {

class Histogram {
public:
  Histogram(tile::HistogramOp op, Machine machine, DenseMap<Value, Value> &buffers)
      : op(op), machine(machine), buffers(buffers), e(op.getLoc(), machine, buffers), bins(op.getType().getDimSize(0)),
        sideBySide(bins <= fewBins ? machine.lanes() : 4) {
    e.levels.push_back({op->getBlock(), op});
  }

  void lower() {
    OpBuilder builder(op);
    const Type i32 = builder.getI32Type();
    const int64_t lanes = machine.lanes();
    tables = allocateBuffer(builder, op.getLoc(), RankedTensorType::get({sideBySide, bins + 1}, i32), machine);
    const Value result = allocateBuffer(builder, op.getLoc(), op.getType(), machine);
    const Value zeros = e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(e.vectorOf(i32))));
    e.loop(e.constantIndex(0), e.constantIndex(sideBySide), 1, [&](Ix table) {
      e.loop(e.constantIndex(0), e.constantIndex(bins + 1), lanes,
             [&](Ix bin) { e.storeBuffer(zeros, tables, {table, e.lanesFrom(bin.at, lanes)}); });
    });
    Index index;
    countFrom(index);
    e.loop(e.constantIndex(0), e.constantIndex(bins), lanes, [&](Ix bin) {
      Value sum;
      for (int64_t table = 0; table < sideBySide; ++table) {
        const Value row = e.constantIndex(table);
        e.moveTo(e.depth());
        const Value counts = vector::LoadOp::create(e.builder, e.loc, e.vectorOf(i32), tables, ValueRange{row, bin.at});
        sum = sum ? arith::AddIOp::create(e.builder, e.loc, sum, counts).getResult() : counts;
      }
      e.noted(sum, e.depth());
      e.storeBuffer(sum, result, {e.lanesFrom(bin.at, lanes)});
    });
    buffers[op.getResult()] = result;
  }

private:
  /// The most bins for which tables of all lanes fit half of the L1 cache.
  static constexpr int64_t fewBins = 256;

  /// Counts the elements whose leading positions are in `index`.
  void countFrom(Index &index) {
    const ArrayRef<int64_t> shape = op.getSource().getType().getShape();
    const int64_t extent = shape[index.size()], lanes = machine.lanes(), full = extent / lanes * lanes;
    const auto with = [&](const Ix &position, function_ref<void()> body) {
      index.push_back(position);
      body();
      index.pop_back();
    };
    if (index.size() + 1 < shape.size()) {
      e.loop(e.constantIndex(0), e.constantIndex(extent), 1,
             [&](Ix position) { with(position, [&] { countFrom(index); }); });
      return;
    }
    if (full)
      e.loop(e.constantIndex(0), e.constantIndex(full), lanes,
             [&](Ix base) { with(e.lanesFrom(base.at, lanes), [&] { countVector(index, lanes); }); });
    if (extent > full)
      with(e.lanesFrom(e.constantIndex(full), extent - full), [&] { countVector(index, extent - full); });
  }

  void countVector(const Index &index, int64_t valid) {
    const Value numbers = e.vectorAt(op.getSource(), index);
    const Type element = getElementTypeOrSelf(numbers), i32 = e.builder.getI32Type();
    const auto constant = [&](Type type, int64_t value) {
      return e.make<arith::ConstantOp>(DenseElementsAttr::get(e.vectorOf(type), e.builder.getIntegerAttr(type, value)));
    };
    Value counts = e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, numbers, constant(element, bins));
    if (op.getMask())
      counts = e.make<arith::AndIOp>(counts, e.vectorAt(op.getMask(), index));
    const Value narrow = element == i32 ? numbers : e.make<arith::TruncIOp>(e.vectorOf(i32), numbers);
    const Value places = e.make<arith::SelectOp>(counts, narrow, constant(i32, bins));
    e.moveTo(e.depth());
    OpBuilder &b = e.builder;
    const Value one = arith::ConstantIntOp::create(b, e.loc, 1, 32);
    for (int64_t lane = 0; lane < valid; ++lane) {
      const Value table = arith::ConstantIndexOp::create(b, e.loc, lane % sideBySide);
      const Value place =
          arith::IndexCastUIOp::create(b, e.loc, b.getIndexType(), vector::ExtractOp::create(b, e.loc, places, lane));
      const Value before = memref::LoadOp::create(b, e.loc, tables, ValueRange{table, place});
      memref::StoreOp::create(b, e.loc, arith::AddIOp::create(b, e.loc, before, one), tables, ValueRange{table, place});
    }
  }

  tile::HistogramOp op;
  const Machine machine;
  DenseMap<Value, Value> &buffers; // read by e
  Evaluator e;
  const int64_t bins, sideBySide; // tables
  Value tables;
};

} // namespace

static void lowerHistogram(tile::HistogramOp op, Machine machine, DenseMap<Value, Value> &buffers) {
  Histogram(op, machine, buffers).lower();
}

bool lowerSorts(Operation *op, Machine machine, DenseMap<Value, Value> &buffers) {
  if (auto sort = dyn_cast<tile::SortOp>(op))
    lowerSort(sort, machine, buffers);
  else if (auto take = dyn_cast<tile::TakeOp>(op))
    lowerTake(take, machine, buffers);
  else if (auto histogram = dyn_cast<tile::HistogramOp>(op))
    lowerHistogram(histogram, machine, buffers);
  else
    return false;
  return true;
}

} // namespace kiln::lowering::cpu

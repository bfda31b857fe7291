// Reductions and scans on native vectors.

#include "lowering/cpu/Reduction.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <numeric>

using namespace mlir;

namespace kiln::lowering::cpu {

// --- Reductions ------------------------------------------------------------------------------------------------------

Reduction::State Reduction::emit(ValueRange inputs, function_ref<State(Emit &)> arithmetic) {
  int where = 0;
  for (Value input : inputs)
    where = std::max(where, e.depthOf(input));
  e.moveTo(where);
  Emit emit(e.builder, e.loc);
  State state = arithmetic(emit);
  for (Value value : state)
    e.noted(value, where);
  return state;
}

static int64_t lanesOf(Value vector) { return cast<VectorType>(vector.getType()).getNumElements(); }

/// A state in its loop-carried form. AVX2's comparisons produce words of ones or zeros; i1 would be packed and unpacked
/// in every iteration.
Reduction::State Reduction::held(State state) {
  if (!element.isInteger(1) || e.machine.vectorBits == 512)
    return state;
  for (Value &value : state) {
    const auto wide = static_cast<unsigned>(std::clamp<int64_t>(e.machine.vectorBits / lanesOf(value), 8, 64));
    const Type words = typeLike(value.getType(), e.builder.getIntegerType(wide));
    const unsigned width = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
    if (width < wide)
      value = e.make<arith::ExtSIOp>(words, value);
    else if (width > wide)
      value = e.make<arith::TruncIOp>(words, value);
  }
  return state;
}

Value Reduction::lanes(const State &state) {
  const Value last = Combiner::end(state);
  if (!element.isInteger(1) || getElementTypeOrSelf(last.getType()).isInteger(1))
    return last;
  Value zero = e.make<arith::ConstantOp>(e.builder.getZeroAttr(last.getType()));
  return e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, last, zero);
}

Reduction::State Reduction::neutral() { return held(none()); }

/// The neutral elements.
Reduction::State Reduction::none() {
  State state;
  for (TypedAttr value : combiner.neutral())
    state.push_back(e.asVector(e.make<arith::ConstantOp>(value)));
  return state;
}

Reduction::State Reduction::combine(const State &a, const State &b) {
  const State first = held(a), second = held(b);
  SmallVector<Value> inputs(first.begin(), first.end());
  llvm::append_range(inputs, second);
  return emit(inputs, [&](Emit &emit) { return combiner.combine(emit, first, second); });
}

static Value laneNumbers(Evaluator &e, Type type) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < e.machine.lanes(); ++lane)
    numbers.push_back(e.builder.getIntegerAttr(type, lane));
  return e.make<arith::ConstantOp>(DenseElementsAttr::get(e.vectorOf(type), numbers));
}

/// `value` extended to `lanes` lanes with `none`.
Value Reduction::padded(Value value, int64_t lanes, Value none) {
  const int64_t given = lanesOf(value);
  if (given == lanes)
    return value;
  SmallVector<int64_t> order(lanes, given);
  std::iota(order.begin(), order.begin() + given, 0);
  return e.make<vector::ShuffleOp>(value, none, order);
}

Value Reduction::slice(Value value, int64_t first, int64_t lanes) {
  SmallVector<int64_t> order(lanes);
  std::iota(order.begin(), order.end(), first);
  return e.make<vector::ShuffleOp>(value, value, order);
}

Reduction::State Reduction::add(const State &state, Value elements, Value position, bool step, int64_t valid) {
  elements = e.asVector(elements);
  Value index;
  if (hasIndex()) {
    index = e.asVector(e.make<arith::IndexCastOp>(e.builder.getI32Type(), position));
    if (step)
      index = e.make<arith::AddIOp>(index, laneNumbers(e, e.builder.getI32Type()));
  }
  SmallVector<Value> inputs = {elements};
  if (index)
    inputs.push_back(index);
  State next = emit(inputs, [&](Emit &emit) { return combiner.begin(emit, elements, index); });
  if (step && valid < e.machine.lanes()) {
    Value bound = e.asVector(e.make<arith::ConstantOp>(e.builder.getI32IntegerAttr(valid)));
    Value inside = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, laneNumbers(e, e.builder.getI32Type()), bound);
    for (auto [value, other] : llvm::zip(next, none()))
      value = e.make<arith::SelectOp>(inside, value, other);
  }
  for (auto [value, before, other] : llvm::zip(next, state, none()))
    value = padded(value, lanesOf(before), other);
  return combine(state, next);
}

Reduction::State Reduction::folded(State state, int64_t lanes) {
  for (int64_t half = lanesOf(state[0]) / 2; half >= lanes; half /= 2) {
    const auto halves = [&](int64_t first) {
      return llvm::map_to_vector(state, [&](Value value) { return slice(value, first, half); });
    };
    state = combine(halves(0), halves(half));
  }
  return state;
}

Reduction::State Reduction::periodic(ArrayRef<State> line, int64_t period) {
  const int64_t lanes = lanesOf(line.front()[0]), all = std::lcm(lanes, period) / lanes;
  SmallVector<State> states(line.take_front(all)); // one period of the lanes and of `period`
  for (auto [i, state] : llvm::enumerate(line.drop_front(all)))
    states[i % all] = combine(states[i % all], state);
  if (all == 1) { // combine the halves
    State state = states.front();
    for (int64_t half = lanes / 2; half >= period; half /= 2) {
      SmallVector<int64_t> order;
      for (int64_t lane = 0; lane < lanes; ++lane)
        order.push_back((lane + half) % lanes);
      state = combine(state, llvm::map_to_vector(state, [&](Value value) -> Value {
                        return e.make<vector::ShuffleOp>(value, value, order);
                      }));
    }
    return state;
  }
  SmallVector<State> rows;
  for (int64_t begin = 0; begin < all * lanes; begin += period) {
    const int64_t first = begin / lanes, second = (begin + period - 1) / lanes;
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < lanes; ++lane)
      order.push_back(begin + lane % period - first * lanes);
    State &row = rows.emplace_back();
    for (auto [a, b] : llvm::zip_equal(states[first], states[second]))
      row.push_back(e.make<vector::ShuffleOp>(a, b, order));
  }
  for (; rows.size() > 1; rows.resize(llvm::divideCeil(rows.size(), 2)))
    for (size_t i = 0, half = llvm::divideCeil(rows.size(), 2); i + half < rows.size(); ++i)
      rows[i] = combine(rows[i], rows[i + half]);
  return rows.front();
}

Value Reduction::acrossLanes(State state) {
  if (element.isInteger(1) && (kind == tile::ReduceKind::Min || kind == tile::ReduceKind::Max)) { // one instruction
    auto together = kind == tile::ReduceKind::Min ? vector::CombiningKind::AND : vector::CombiningKind::OR;
    return e.make<vector::ReductionOp>(together, lanes(state));
  }
  for (int64_t half = e.machine.lanes() / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < e.machine.lanes(); ++lane)
      order.push_back((lane + half) % e.machine.lanes());
    State upper;
    for (Value value : state)
      upper.push_back(e.make<vector::ShuffleOp>(value, value, order));
    state = combine(state, upper);
  }
  for (Value &value : state)
    value = e.make<vector::ExtractOp>(value, int64_t(0));
  return lanes(state);
}

/// The same tree for all states at once: lanes `half` apart of two states `half` apart are combined in one vector.
Value Reduction::acrossLanesOfAll(SmallVector<Value> states) {
  const auto count = static_cast<int64_t>(states.size());
  for (int64_t half = count / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> lower, upper;
    for (int64_t lane = 0; lane < count; ++lane) {
      lower.push_back((lane & half ? count : 0) + (lane & ~half));
      upper.push_back((lane & half ? count : 0) + (lane | half));
    }
    for (int64_t i = 0; i < half; ++i)
      states[i] = combine({e.make<vector::ShuffleOp>(states[i], states[i + half], lower)},
                          {e.make<vector::ShuffleOp>(states[i], states[i + half], upper)})[0];
  }
  return lanes({states[0]});
}

// --- Scans -----------------------------------------------------------------------------------------------------------

Scan::State Scan::neutral() {
  State state;
  for (TypedAttr value : combiner.neutral())
    state.push_back(e.asVector(e.make<arith::ConstantOp>(value)));
  return state;
}

Scan::State Scan::begin() {
  if (combiner.hasNeutral())
    return neutral();
  State state;
  for (Value source : op.getSources()) {
    const auto zero = cast<TypedAttr>(e.builder.getZeroAttr(getElementTypeOrSelf(source.getType())));
    state.push_back(e.asVector(e.make<arith::ConstantOp>(zero)));
  }
  return state;
}

Scan::State Scan::combine(const State &earlier, const State &later) {
  int where = 0;
  for (Value value : llvm::concat<const Value>(earlier, later))
    where = std::max(where, e.depthOf(value));
  e.moveTo(where);
  Emit emit(e.builder, e.loc);
  State state = combiner.combine(emit, earlier, later);
  for (Value value : state)
    e.noted(value, where);
  return state;
}

Scan::State Scan::choose(Value condition, const State &a, const State &b) {
  State state;
  for (auto [x, y] : llvm::zip_equal(a, b))
    state.push_back(e.make<arith::SelectOp>(condition, x, y));
  return state;
}

Scan::State Scan::after(const State &carry, const State &state, Value isFirst) {
  APInt known;
  if (isFirst && matchPattern(isFirst, m_ConstantInt(&known)) && !known.isZero())
    return state;
  const State both = combine(carry, state);
  return isFirst && !matchPattern(isFirst, m_Zero()) ? choose(isFirst, state, both) : both;
}

Scan::State Scan::shuffled(const State &state, const State &other, ArrayRef<int64_t> order) {
  State result;
  for (auto [value, second] : llvm::zip_equal(state, other))
    result.push_back(e.make<vector::ShuffleOp>(value, second, order));
  return result;
}

Scan::State Scan::scanLanes(State state, int64_t valid) {
  const int64_t lanes = e.machine.lanes();
  for (int64_t distance = 1; distance < valid; distance *= 2) {
    SmallVector<int64_t> order;
    SmallVector<bool> has;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t before = isReversed() ? lane + distance : lane - distance;
      has.push_back(before >= 0 && before < valid);
      order.push_back(has.back() ? before : combiner.hasNeutral() ? lanes : lane);
    }
    const State both = combine(shuffled(state, combiner.hasNeutral() ? neutral() : state, order), state);
    const Value mask =
        combiner.hasNeutral()
            ? Value()
            : e.make<arith::ConstantOp>(DenseElementsAttr::get(e.vectorOf(e.builder.getI1Type()), ArrayRef<bool>(has)));
    state = mask ? choose(mask, both, state) : both;
  }
  return state;
}

Scan::State Scan::step(const Index &index, State &carry) {
  State elements;
  for (Value source : op.getSources())
    elements.push_back(e.vectorAt(source, index));
  const Ix &along = index[op.getAxis()];
  Value isFirst;
  if (!combiner.hasNeutral()) {
    APInt at;
    isFirst = matchPattern(along.at, m_ConstantInt(&at))
                  ? e.make<arith::ConstantOp>(e.builder.getBoolAttr(at.isZero()))
                  : e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, along.at, e.constantIndex(0));
  }
  if (!along.lanes)
    return carry = after(carry, elements, isFirst);
  const State scanned = scanLanes(elements, along.valid);
  const SmallVector<int64_t> last(e.machine.lanes(), isReversed() ? 0 : along.valid - 1);
  const State results = after(carry, scanned, isFirst);
  carry = after(carry, shuffled(scanned, scanned, last), isFirst); // without a dependency on the results
  return results;
}

// --- The scans of a nest ---------------------------------------------------------------------------------------------

Scans::Scans(Evaluator &evaluator, ArrayRef<Root> roots) : e(evaluator), roots(roots) {
  for (const Root &root : roots)
    if (root.isScan())
      scans.push_back(Scan(e, cast<tile::ScanOp>(root.op)));
}

bool Scans::dependsOnScan(Value tile) const {
  Operation *op = tile.getDefiningOp();
  if (empty() || !op || e.isBuffered(tile) || !isa<RankedTensorType>(tile.getType()))
    return false;
  if (const auto known = dependents.find(tile); known != dependents.end())
    return known->second;
  const bool answer = llvm::any_of(roots, [&](const Root &root) { return root.isScan() && root.op == op; }) ||
                      llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnScan(operand); });
  return dependents[tile] = answer;
}

void Scans::begin() {
  carries.clear();
  for (Scan &scan : scans)
    carries.push_back(scan.begin());
}

SmallVector<Value> Scans::with(SmallVector<Value> values) const {
  for (const Scan::State &carry : carries)
    llvm::append_range(values, carry);
  return values;
}

void Scans::take(ValueRange values) {
  values = values.take_back(width());
  for (Scan::State &carry : carries) {
    const size_t count = carry.size();
    carry = Scan::State(values.take_front(count));
    values = values.drop_front(count);
  }
}

void Scans::step(const Root &root, const Index &index) {
  const auto before = llvm::make_range(roots.begin(), &root);
  const auto number = llvm::count_if(before, [](const Root &other) { return other.isScan(); });
  const Scan::State results = scans[number].step(index, carries[number]);
  for (auto [value, result, buffer] : llvm::zip(results, root.op->getResults(), root.buffers)) {
    if (buffer)
      e.storeBuffer(value, buffer, index);
    e.remember(result, index, value);
  }
}

void Scans::finish(Index index) {
  size_t number = 0;
  for (const Root &root : roots) {
    if (!root.isScan())
      continue;
    Index last(index);
    last[root.axis] = e.fixed(0);
    const bool isLane = !root.isColumns();
    for (auto [value, buffer] : llvm::zip(carries[number++], root.lasts))
      if (buffer) // along lanes, all lanes have the last one's value
        e.storeBuffer(isLane ? e.make<vector::ExtractOp>(value, int64_t(0)) : value, buffer, last);
  }
}

} // namespace kiln::lowering::cpu

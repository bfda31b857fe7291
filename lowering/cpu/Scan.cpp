// See Scan.h.

#include "lowering/cpu/Scan.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering::cpu {

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

// Evaluates a tile at one index, recursively through inlinable operations down to loads and buffers. Access.cpp reads
// memory.

#include "lowering/cpu/Evaluator.h"

#include "lowering/cpu/Lanes.h"

using namespace mlir;

namespace kiln::lowering::cpu {

void Evaluator::moveTo(int depth) {
  const Level &level = levels[depth];
  if (level.before)
    builder.setInsertionPoint(level.before);
  else
    builder.setInsertionPointToEnd(level.block);
}

void Evaluator::within(Operation *op, Block *block, function_ref<void()> body) {
  const int where = depth();
  Operation *saved = levels.back().before;
  levels.back().before = op;
  levels.push_back({block, block->empty() ? nullptr : block->getTerminator()});
  body();
  levels.pop_back();
  levels.back().before = saved;
  forgetBelow(where);
}

SmallVector<Value> Evaluator::loop(Value from, Value to, int64_t step, ValueRange carried,
                                   function_ref<SmallVector<Value>(Ix, ValueRange)> body) {
  Value stride = constantIndex(step);
  moveTo(depth());
  auto loop = scf::ForOp::create(builder, loc, from, to, stride, carried);
  if (!loop.getBody()->empty()) // a loop without results is created with its yield
    loop.getBody()->back().erase();
  within(loop, loop.getBody(), [&] {
    noted(loop.getInductionVar(), depth());
    for (Value argument : loop.getRegionIterArgs())
      noted(argument, depth());
    SmallVector<Value> yielded = body(along(loop.getInductionVar()), loop.getRegionIterArgs());
    moveTo(depth());
    scf::YieldOp::create(builder, loc, yielded);
  });
  SmallVector<Value> results;
  for (Value result : loop.getResults())
    results.push_back(noted(result, depth()));
  return results;
}

void Evaluator::loop(Value from, Value to, int64_t step, function_ref<void(Ix)> body) {
  loop(from, to, step, {}, [&](Ix position, ValueRange) -> SmallVector<Value> {
    body(position);
    return {};
  });
}

SmallVector<Value> Evaluator::unrolledLoop(Value from, Value to, int64_t count, ValueRange carried,
                                           function_ref<SmallVector<Value>(Ix, ValueRange)> body) {
  if (count == 1)
    return loop(from, to, 1, carried, body);
  APInt begin, end;
  const bool divides = matchPattern(from, m_ConstantInt(&begin)) && matchPattern(to, m_ConstantInt(&end)) &&
                       (end.getSExtValue() - begin.getSExtValue()) % count == 0;
  Value left = make<arith::RemUIOp>(make<arith::SubIOp>(to, from), constantIndex(count));
  Value whole = divides ? to : make<arith::SubIOp>(to, left);
  SmallVector<Value> values = loop(from, whole, count, carried, [&](Ix at, ValueRange inner) {
    SmallVector<Value> next(inner);
    for (int64_t step = 0; step < count; ++step)
      next = body(step ? along(make<arith::AddIOp>(at.at, constantIndex(step))) : at, next);
    return next;
  });
  return divides ? values : loop(whole, to, 1, values, body);
}

void Evaluator::unrolledLoop(Value from, Value to, int64_t count, function_ref<void(Ix)> body) {
  unrolledLoop(from, to, count, {}, [&](Ix position, ValueRange) -> SmallVector<Value> {
    body(position);
    return {};
  });
}

void Evaluator::branch(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
  moveTo(depth());
  auto choice = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
  within(choice, choice.thenBlock(), then);
  if (otherwise)
    within(choice, choice.elseBlock(), otherwise);
}

SmallVector<Value> Evaluator::choose(Value condition, TypeRange types, function_ref<SmallVector<Value>()> then,
                                     function_ref<SmallVector<Value>()> otherwise) {
  moveTo(depth());
  auto choice = scf::IfOp::create(builder, loc, types, condition, /*withElseRegion=*/true);
  for (auto [block, compute] : {std::pair(choice.thenBlock(), then), std::pair(choice.elseBlock(), otherwise)}) {
    if (!block->empty()) // without results it is created with its yield
      block->back().erase();
    within(choice, block, [&] {
      SmallVector<Value> computed = compute();
      moveTo(depth());
      scf::YieldOp::create(builder, loc, computed);
    });
  }
  SmallVector<Value> results;
  for (Value result : choice.getResults())
    results.push_back(noted(result, depth()));
  return results;
}

Value Evaluator::constantIndex(int64_t value) {
  Value &constant = constants[value];
  if (!constant)
    constant = make<arith::ConstantIndexOp>(value);
  return constant;
}

Ix Evaluator::keptHere(const Ix &position) {
  Value zero = constantIndex(0);
  moveTo(depth());
  Value at = noted(arith::AddIOp::create(builder, loc, position.at, zero), depth());
  return {at, depth(), position.lanes, position.valid, position.steps};
}

Value Evaluator::least(Value a, Value b) {
  APInt x, y;
  if (matchPattern(a, m_ConstantInt(&x)) && matchPattern(b, m_ConstantInt(&y)))
    return x.sle(y) ? a : b;
  return make<arith::MinSIOp>(a, b);
}

Value Evaluator::asIndex(Value value) {
  if (value.getType().isIndex())
    return value;
  return make<arith::IndexCastOp>(builder.getIndexType(), value);
}

Value Evaluator::asVector(Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return make<vector::BroadcastOp>(vectorOf(value.getType()), value);
}

Evaluator::Key Evaluator::keyOf(Value tile, const Index &index) const {
  const bool hasLanes = llvm::any_of(index, [](const Ix &ix) { return ix.lanes; });
  Key key{tile.getAsOpaquePointer(), {reinterpret_cast<void *>(hasLanes ? machine.lanes() : 0)}};
  for (const Ix &ix : index) {
    key.second.push_back(ix.at.getAsOpaquePointer());
    key.second.push_back(reinterpret_cast<void *>(static_cast<intptr_t>(ix.lanes)));
    key.second.push_back(const_cast<Steps *>(ix.steps));
  }
  return key;
}

void Evaluator::remember(Value tile, const Index &index, Value value) { known[keyOf(tile, index)] = value; }

void Evaluator::forgetBelow(int depth) {
  std::erase_if(known, [&](const auto &entry) { return depthOf(entry.second) > depth; });
}

void Evaluator::forgetWithin(Operation *op) {
  std::erase_if(known,
                [&](const auto &entry) { return op->isAncestor(Value(entry.second).getParentBlock()->getParentOp()); });
}

Value Evaluator::at(Value tile, const Index &index) {
  if (!isa<RankedTensorType>(tile.getType()))
    return tile;
  if (auto same = assumed.find(tile); same != assumed.end())
    return make<arith::ConstantOp>(builder.getBoolAttr(same->second));
  Key key = keyOf(tile, index);
  auto found = known.find(key);
  if (found != known.end())
    return found->second;
  Value value = knownLane(tile, index);
  if (!value)
    value = compute(tile, index);
  known[std::move(key)] = value;
  return value;
}

Value Evaluator::compute(Value tile, const Index &index) {
  Type element = getElementTypeOrSelf(tile.getType());
  if (Value buffer = buffers.lookup(tile))
    return readBuffer(buffer, element, isDense(tile) ? Index{inOrder(index, tile::shapeOf(tile.getType()))} : index);
  Operation *op = tile.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = cast<DenseElementsAttr>(constant.getValue());
    return make<arith::ConstantOp>(cast<TypedAttr>(dense.getSplatValue<Attribute>()));
  }
  if (auto iotaOp = dyn_cast<tile::IotaOp>(op))
    return iota(iotaOp, index[0]);
  if (isLoad(op))
    return load(cast<tile::AccessOp>(op), index);
  if (auto moveOp = dyn_cast<tile::MoveOp>(op))
    return move(moveOp, index);
  return elementwise(op, index);
}

Value Evaluator::elementwise(Operation *op, const Index &index) {
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Value condition = at(select.getCondition(), index);
    APInt known;
    if (matchPattern(condition, m_ConstantInt(&known)))
      return at(known.isZero() ? select.getFalseValue() : select.getTrueValue(), index);
    if (Value value = branchOf(select, condition, index))
      return value;
  }
  // In program order, so that the loads of a chain of sums are in increasing order, which suits the hardware
  // prefetcher.
  const auto isHere = [&](Value operand) {
    return operand.getDefiningOp() && operand.getDefiningOp()->getBlock() == op->getBlock();
  };
  auto order = llvm::to_vector(llvm::seq<size_t>(0, op->getNumOperands()));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    const Value x = op->getOperand(a), y = op->getOperand(b);
    return isHere(x) && isHere(y) ? x.getDefiningOp()->isBeforeInBlock(y.getDefiningOp()) : isHere(x) < isHere(y);
  });
  SmallVector<Value> operands(order.size());
  bool lanes = false;
  for (size_t i : order) {
    operands[i] = at(op->getOperand(i), index);
    lanes |= isa<VectorType>(operands[i].getType());
  }
  if (lanes)
    for (Value &operand : operands)
      operand = asVector(operand);
  int where = 0;
  for (Value operand : operands)
    where = std::max(where, depthOf(operand));
  moveTo(where);
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  OperationState state(op->getLoc(), op->getName(), operands, lanes ? Type(vectorOf(element)) : element);
  state.propertiesAttr = op->getPropertiesAsAttribute();
  if (op->hasAttr("cpu.flushes"))
    state.addAttribute("cpu.flushes", builder.getUnitAttr());
  return noted(builder.create(state)->getResult(0), where);
}

int64_t costOf(Operation *op) {
  if (isa<arith::DivFOp, math::SqrtOp>(op))
    return 5;
  return op->getName().getDialectNamespace() == "math" && !isa<math::FmaOp, math::AbsFOp>(op) ? 8 : 1;
}

bool Evaluator::costsMoreThan(int64_t most, Value tile) const {
  int64_t cost = 0;
  SmallVector<Value> work = {tile};
  while (!work.empty() && cost <= most) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!isa<RankedTensorType>(value.getType()) || (op && op->hasTrait<OpTrait::ConstantLike>()))
      continue;
    cost += !op ? 1 : isa<tile::MoveOp>(op) ? 0 : costOf(op);
    if (op && !isBuffered(value) && isInlinable(op))
      llvm::append_range(work, op->getOperands());
  }
  return cost > most;
}

Value Evaluator::branchOf(arith::SelectOp op, Value condition, const Index &index) {
  if (isa<VectorType>(condition.getType()) || !followsFromPlace(op.getCondition()) ||
      !(costsMoreThan(branchCost, op.getTrueValue()) || costsMoreThan(branchCost, op.getFalseValue())))
    return {};
  const bool lanes = llvm::any_of(index, [](const Ix &ix) { return ix.lanes; });
  const Type element = getElementTypeOrSelf(op.getType());
  const auto side = [&](Value tile) {
    return [&, tile] {
      Index deeper(index);
      for (Ix &ix : deeper)
        ix.depth = depth(); // values computed there are local to it
      Value value = at(tile, deeper);
      return lanes ? asVector(value) : value;
    };
  };
  int where = depthOf(condition);
  for (const Ix &ix : index)
    where = std::max(where, ix.depth);
  return eitherWay(where, condition, lanes ? Type(vectorOf(element)) : element, index, side(op.getTrueValue()),
                   [&](const Index &) { return side(op.getFalseValue())(); });
}

Value Evaluator::iota(tile::IotaOp op, const Ix &position) {
  Type element = op.getType().getElementType();
  Value first = make<arith::IndexCastOp>(element, position.at);
  if (!position.lanes)
    return first;
  Value lanes = constantLanes(element, position);
  return make<arith::AddIOp>(asVector(first), lanes);
}

void Evaluator::forLane(const Index &index, Value number, function_ref<void(const Index &)> body) {
  Index position(index);
  for (Ix &ix : position) {
    if (!ix.lanes)
      continue;
    Value step = number;
    if (ix.steps) {
      Value all = constantLanes(builder.getIndexType(), ix);
      moveTo(depthOf(number));
      step = noted(vector::ExtractOp::create(builder, loc, all, OpFoldResult(number)), depthOf(number));
    }
    ix = along(make<arith::AddIOp>(ix.at, step));
  }
  const std::optional<Lane> outer = std::exchange(lane, Lane{index, position, number});
  body(position);
  lane = outer;
}

Value Evaluator::knownLane(Value tile, const Index &index) {
  if (!lane || keyOf(tile, index) != keyOf(tile, lane->here))
    return {};
  auto all = known.find(keyOf(tile, lane->all));
  if (all == known.end() || depthOf(all->second) > depth())
    return {};
  if (!isa<VectorType>(all->second.getType()))
    return all->second;
  const int where = std::max(depthOf(all->second), depthOf(lane->number));
  moveTo(where);
  return noted(vector::ExtractOp::create(builder, loc, all->second, OpFoldResult(lane->number)), where);
}

bool Evaluator::isDense(Value tile) {
  Operation *op = tile.getDefiningOp();
  return op && op->hasAttr("cpu.dense");
}

Ix Evaluator::inOrder(const Index &index, ArrayRef<int64_t> shape) {
  AffineExpr order = builder.getAffineConstantExpr(0);
  for (auto [axis, extent] : llvm::enumerate(shape))
    order = order * extent + builder.getAffineDimExpr(axis);
  return *mapped(order, index); // only sums and products
}

Index Evaluator::acrossUnits(ArrayRef<int64_t> from, ArrayRef<int64_t> to, const Index &index) {
  Index inner;
  size_t next = 0;
  for (int64_t extent : from) {
    if (extent == 1) {
      inner.push_back(fixed(0));
      continue;
    }
    while (to[next] == 1)
      ++next;
    inner.push_back(index[next++]);
  }
  return inner;
}

Value Evaluator::positionOf(AffineExpr expr, const Index &index) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return index[dim.getPosition()].at;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constantIndex(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = positionOf(binary.getLHS(), index), rhs = positionOf(binary.getRHS(), index);
  switch (expr.getKind()) { // positions are not negative
  case AffineExprKind::Add:
    return make<arith::AddIOp>(lhs, rhs);
  case AffineExprKind::Mul:
    return make<arith::MulIOp>(lhs, rhs);
  case AffineExprKind::Mod:
    return make<arith::RemUIOp>(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return make<arith::DivUIOp>(lhs, rhs);
  case AffineExprKind::CeilDiv: // no operation uses it
  case AffineExprKind::Constant:
  case AffineExprKind::DimId:
  case AffineExprKind::SymbolId:
    break;
  }
  llvm_unreachable("a binary operation of another kind");
}

Value Evaluator::constantLanes(Type element, const Ix &position) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < machine.lanes(); ++lane)
    numbers.push_back(
        builder.getIntegerAttr(element, position.steps && lane >= position.valid ? 0 : position.stepOf(lane)));
  return make<arith::ConstantOp>(DenseElementsAttr::get(vectorOf(element), numbers));
}

std::optional<Ix> Evaluator::mapped(AffineExpr expr, const Index &index) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return index[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return fixed(constant.getValue());
  const auto *const lanes = llvm::find_if(index, [](const Ix &ix) { return ix.lanes; });
  if (lanes == index.end())
    return along(positionOf(expr, index));
  SmallVector<LanePositions> positions;
  for (const Ix &ix : index) {
    LanePositions &position = positions.emplace_back(LanePositions{congruenceOf(ix.at), {}});
    for (int64_t lane = 0; lane < lanes->valid; ++lane)
      position.steps.push_back(ix.stepOf(lane));
  }
  auto result = mappedBy(expr, positions);
  if (!result)
    return std::nullopt;
  const auto [least, most] = std::minmax_element(result->steps.begin(), result->steps.end());
  const int64_t first = *least;
  const bool isScalar = first == *most;
  Value base = result->base.modulus == 0 ? constantIndex(result->base.residue + first) : positionOf(expr, index);
  if (result->base.modulus != 0 && first != 0)
    base = make<arith::AddIOp>(base, constantIndex(first));
  if (isScalar)
    return along(base);
  Ix ix = lanesFrom(base, lanes->valid);
  for (int64_t &step : result->steps)
    step -= first;
  if (!llvm::equal(result->steps, llvm::seq<int64_t>(0, lanes->valid)))
    ix.steps = kept(Steps(result->steps.begin(), result->steps.end()));
  return ix;
}

std::optional<Index> Evaluator::mapped(AffineMap map, const Index &index) {
  Index inner;
  for (AffineExpr expr : map.getResults()) {
    auto position = mapped(expr, index);
    if (!position)
      return std::nullopt;
    inner.push_back(*position);
  }
  return inner;
}

Value Evaluator::move(tile::MoveOp op, const Index &index) {
  Value source = op.getMoved();
  if (!isa<RankedTensorType>(source.getType()))
    return source;
  Type element = getElementTypeOrSelf(source.getType());
  if (Value buffer = buffers.lookup(source); buffer && isDense(source) && isa<tile::ReshapeOp>(op))
    return readBuffer(buffer, element, {inOrder(index, tile::shapeOf(op->getResult(0).getType()))});
  const AffineMap map = op.getMoveMap();
  if (auto inner = mapped(map, index))
    return at(source, *inner);
  return laneByLane(index, element, [&](const Index &position) { return at(source, *mapped(map, position)); });
}

Value Evaluator::laneByLane(const Index &index, Type element, llvm::function_ref<Value(const Index &)> scalar) {
  int where = 0;
  for (const auto &[access, level] : inside) // which an index of constants does not show
    where = std::max(where, level);
  int64_t valid = machine.lanes();
  for (const Ix &ix : index) {
    where = std::max(where, ix.depth);
    if (ix.lanes)
      valid = ix.valid;
  }
  Value zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(vectorOf(element))));
  Value from = constantIndex(0), to = constantIndex(valid), one = constantIndex(1);
  moveTo(where);
  auto loop = scf::ForOp::create(builder, loc, from, to, one, ValueRange{zero});
  SmallVector<Level> saved(levels);
  levels.resize(where + 1);
  levels.back().before = loop;
  levels.push_back({loop.getBody(), nullptr});
  noted(loop.getInductionVar(), depth());
  noted(loop.getRegionIterArg(0), depth());
  Value lane;
  forLane(index, loop.getInductionVar(), [&](const Index &position) { lane = scalar(position); });
  moveTo(depth());
  Value next =
      vector::InsertOp::create(builder, loc, lane, loop.getRegionIterArg(0), OpFoldResult(loop.getInductionVar()));
  scf::YieldOp::create(builder, loc, next);
  levels = saved;
  forgetWithin(loop);
  return noted(loop.getResult(0), where);
}

// --- Scratch memory of tiles -----------------------------------------------------------------------------------------

/// The type of a tile's elements in memory.
static Type storedType(Type tile) {
  Type element = getElementTypeOrSelf(tile);
  return element.isInteger(1) ? IntegerType::get(tile.getContext(), 8) : element;
}

Value allocateDense(OpBuilder &builder, Location loc, RankedTensorType tile, Machine machine) {
  // The last vector may extend past the end.
  auto type = MemRefType::get({tile.getNumElements() + machine.lanes()}, storedType(tile));
  return memref::AllocaOp::create(builder, loc, type, builder.getI64IntegerAttr(64));
}

Value allocateBuffer(OpBuilder &builder, Location loc, Type tile, Machine machine, int64_t skew) {
  SmallVector<int64_t> shape(tile::shapeOf(tile));
  shape.back() = llvm::divideCeil(shape.back(), machine.lanes()) * machine.lanes() + skew;
  return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, storedType(tile)),
                                  builder.getI64IntegerAttr(64));
}

} // namespace kiln::lowering::cpu

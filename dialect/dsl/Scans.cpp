// Scans by kind, and scans and reductions by functions. A function is traced once into the region of a `tile.scan`.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln {

std::optional<int64_t> axisOf(Call &call, mlir::Value tile, int axis) {
  const auto rank = static_cast<int64_t>(shapeOf(tile).size());
  if (rank == 0)
    call.expected() << "a tile of rank 1 or more, but got " << describeTile(tile);
  else if (axis < -rank || axis >= rank)
    call.expected() << "an axis from " << -rank << " to " << rank - 1 << ", but got " << axis;
  else
    return axis < 0 ? axis + rank : axis;
  return {};
}

// --- By kinds --------------------------------------------------------------------------------------------------------

static Tile scanBy(const char *name, tile::ReduceKind kind, const At &x, int axis, bool reverse) {
  using tile::ReduceKind;
  Call call(name, x.loc);
  mlir::Value value = call.value(x);
  const auto at = value ? axisOf(call, value, axis) : std::nullopt;
  if (!at || !checkArithmetic(call, value))
    return call.poison();
  const Type from = elementOf(value);
  const bool isTotal = kind == ReduceKind::Sum || kind == ReduceKind::Product;
  const bool isBitwise = kind == ReduceKind::And || kind == ReduceKind::Or || kind == ReduceKind::Xor;
  if (isBitwise && isFloat(from))
    return call.expected() << "integers or booleans, but got " << describe(value) << "; use bitcast()";
  if (isTotal && !isFloat(from))
    value = call.cast(value, accumulatorType(from));
  else if (from == boolean)
    value = call.cast(value, i8);
  const bool compares = kind == ReduceKind::Max || kind == ReduceKind::Min;
  auto scan = call.emit<tile::ScanOp>(kind, value, *at, reverse);
  tile::setUnsigned(scan, compares && isUnsigned(from));
  value = scan.getResult(0);
  return call.result(isTotal && !isFloat(from) ? value : call.cast(value, from));
}

Tile cumsum(At x, int axis, bool reverse) { return scanBy("cumsum", tile::ReduceKind::Sum, x, axis, reverse); }
Tile cumprod(At x, int axis, bool reverse) { return scanBy("cumprod", tile::ReduceKind::Product, x, axis, reverse); }
Tile cummax(At x, int axis, bool reverse) { return scanBy("cummax", tile::ReduceKind::Max, x, axis, reverse); }
Tile cummin(At x, int axis, bool reverse) { return scanBy("cummin", tile::ReduceKind::Min, x, axis, reverse); }
Tile cumand(At x, int axis, bool reverse) { return scanBy("cumand", tile::ReduceKind::And, x, axis, reverse); }
Tile cumor(At x, int axis, bool reverse) { return scanBy("cumor", tile::ReduceKind::Or, x, axis, reverse); }
Tile cumxor(At x, int axis, bool reverse) { return scanBy("cumxor", tile::ReduceKind::Xor, x, axis, reverse); }

// --- By functions ----------------------------------------------------------------------------------------------------

namespace {
/// The operands of a function: tiles of one shape, narrow floats as f32.
struct Scanned {
  SmallVector<mlir::Value> tiles;
  SmallVector<Type> types; // as passed by the user
};

/// A device_assert() in the function of a scan or reduction.
struct Assertion {
  Location loc;
  std::string message;
};
} // namespace

static std::optional<Scanned> operandsOf(Call &call, const std::vector<At> &operands) {
  Scanned scanned;
  Shape shape;
  for (const At &operand : operands) {
    mlir::Value value = call.value(operand);
    if (!value)
      return {};
    const auto common = broadcastShape(shape, shapeOf(value));
    if (!common)
      return call.expected() << "shapes that broadcast, but got " << textOf(shape) << " and " << textOf(shapeOf(value));
    shape = *common;
    scanned.types.push_back(elementOf(value));
    const bool isNarrow = tile::isNarrowFloat(getElementTypeOrSelf(value.getType()));
    scanned.tiles.push_back(isNarrow ? call.cast(value, f32) : value);
  }
  for (mlir::Value &tile : scanned.tiles)
    tile = call.broadcast(tile, shape);
  return scanned;
}

/// Reports unless the function's body is arithmetic on scalars, and assertions.
static bool checkBody(Call &call, Block &body) {
  for (Operation &op : body) {
    const bool isArithmetic = isa<tile::CastOp, tile::DivOp, tile::RemOp, tile::ShlOp, tile::ShrOp>(op) ||
                              isa<arith::ArithDialect>(op.getDialect()) ||
                              op.getName().getDialectNamespace() == "math" || isa<tile::CheckOp, tile::AssumeOp>(op);
    const auto isTile = [](mlir::Type type) { return isa<ShapedType>(type); };
    const bool hasTile = llvm::any_of(op.getOperandTypes(), isTile) || llvm::any_of(op.getResultTypes(), isTile);
    if (isArithmetic && !hasTile)
      continue;
    auto error = mlir::emitError(op.getLoc());
    error << "'" << call.name << "' expected a function of scalars that reads neither tiles nor memory, but got '"
          << op.getName() << "'";
    call.tracer.fail();
    return false;
  }
  return true;
}

/// Reports changes of outer tiles by the function, and restores them. Returns whether there were none.
static bool checkCells(Call &call) {
  bool isFree = true;
  for (FrameCell &cell : call.tracer.innermost().cells)
    if (cell.tile && Tracer::isChanged(cell)) {
      auto error = call.expected();
      error << "a function that changes no tile from outside";
      error.attachNote(call.tracer.at(cell.declared)) << "declared here";
      Tracer::restore(cell);
      isFree = false;
    }
  return isFree;
}

/// The results of the function on two states, which have a scalar for each tile. Reports an error and returns an empty
/// list if they have other types.
static SmallVector<mlir::Value> callCombine(Call &call, const detail::Combine &combine, ArrayRef<mlir::Value> states) {
  const size_t count = states.size() / 2;
  std::vector<Tile> earlier, later;
  for (auto [number, state] : llvm::enumerate(states))
    (number < count ? earlier : later).push_back(call.tracer.make(state, call.loc));
  const std::vector<Tile> results = combine(earlier, later);
  SmallVector<mlir::Value> values;
  for (auto [result, state] : llvm::zip(results, states)) {
    mlir::Value value = call.tracer.read(result, call.loc);
    if (!value)
      return {};
    if (value.getType() != state.getType() || elementOf(value) != elementOf(state)) {
      call.expected() << "a function that returns " << describe(state) << ", the type of its arguments, but got "
                      << describe(value);
      return {};
    }
    values.push_back(value);
  }
  return values;
}

/// Moves the assertions of a function's body to after the scan. For each assertion the state gets a boolean: whether
/// the condition held in all calls that contributed to the state. So a call for lanes without an element, whose results
/// are dropped, reports nothing. `results` of the body are extended likewise.
static SmallVector<Assertion> moveAssertions(Call &call, Block &body, SmallVectorImpl<mlir::Value> &results) {
  SmallVector<Assertion> assertions;
  OpBuilder &builder = call.tracer.builder;
  for (auto promise : llvm::make_early_inc_range(body.getOps<tile::AssumeOp>())) // of no use inside a scan
    promise.erase();
  for (auto check : llvm::make_early_inc_range(body.getOps<tile::CheckOp>())) {
    const Location loc = check.getLoc();
    mlir::Value condition = check.getCondition();
    mlir::Value earlier = body.insertArgument(results.size(), condition.getType(), loc),
                later = body.addArgument(condition.getType(), loc);
    mlir::Value before = arith::AndIOp::create(builder, loc, earlier, later);
    results.push_back(arith::AndIOp::create(builder, loc, before, condition));
    assertions.push_back({loc, check.getMessage().str()});
    check.erase();
  }
  return assertions;
}

/// The function's body with its terminator. Reports an error and returns null if it is not valid.
static Block *traceFunction(Call &call, const detail::Combine &combine, ArrayRef<mlir::Value> tiles,
                            SmallVector<Assertion> &assertions) {
  Tracer &tracer = call.tracer;
  const size_t depth = tracer.open(Body::function, call.loc);
  Block *const body = tracer.innermost().body;
  SmallVector<mlir::Value> states;
  for (int side = 0; side < 2; ++side)
    for (mlir::Value tile : tiles)
      states.push_back(
          call.of(elementOf(tile), body->addArgument(getElementTypeOrSelf(tile.getType()), call.location)));
  SmallVector<mlir::Value> results;
  try {
    results = callCombine(call, combine, states);
  } catch (...) {
    tracer.discard(depth);
    throw;
  }
  if (!checkCells(call) || results.empty() || !checkBody(call, *body)) {
    tracer.discard(depth);
    return nullptr;
  }
  assertions = moveAssertions(call, *body, results);
  tile::YieldOp::create(tracer.builder, call.location, results);
  return tracer.close().body;
}

/// Elements along an axis from `begin` on with a step.
static mlir::Value extractAlong(Call &call, mlir::Value tile, int64_t axis, int64_t begin, int64_t step,
                                int64_t count) {
  Shape shape = shapeOf(tile);
  SmallVector<int64_t> begins(shape.size(), 0), steps(shape.size(), 1);
  begins[axis] = begin;
  steps[axis] = step;
  shape[axis] = count;
  return call.emit<tile::ExtractOp>(typeOf(tile.getContext(), elementOf(tile), shape), tile, begins, steps);
}

std::vector<Tile> detail::fold(const char *name, const std::vector<At> &operands, int axis, bool isScan, bool reverse,
                               const Combine &combine, Loc loc) {
  Call call(name, loc);
  std::vector<Tile> results;
  const auto fail = [&] {
    while (results.size() < operands.size())
      results.push_back(call.poison());
    return results;
  };
  auto scanned = operandsOf(call, operands);
  const auto at = scanned ? axisOf(call, scanned->tiles[0], axis) : std::nullopt;
  if (!at)
    return fail();
  Shape shape = shapeOf(scanned->tiles[0]);
  const int64_t extent = shape[*at];
  const auto inScanOrder = [&](mlir::Value tile) { // a scan by a function runs forwards
    return reverse ? extractAlong(call, tile, *at, extent - 1, -1, extent) : tile;
  };
  for (mlir::Value &tile : scanned->tiles)
    tile = inScanOrder(tile);
  SmallVector<Assertion> assertions;
  Block *const body = traceFunction(call, combine, scanned->tiles, assertions);
  if (!body)
    return fail();
  scanned->tiles.append(assertions.size(),
                        assertions.empty() ? mlir::Value() : call.constant(Literal::allOnes(boolean), boolean, shape));
  SmallVector<mlir::Type> types;
  for (mlir::Value tile : scanned->tiles)
    types.push_back(tile.getType());
  auto scan = call.emit<tile::ScanOp>(types, tile::ReduceKindAttr(), scanned->tiles,
                                      call.tracer.builder.getI64IntegerAttr(*at), UnitAttr());
  for (auto [result, tile] : llvm::zip(scan.getResults(), scanned->tiles))
    call.tracer.noteLike(result, tile);
  scan.getBy().push_back(body);
  shape.erase(shape.begin() + *at);
  const auto resultOf = [&](mlir::Value value) {
    return isScan ? inScanOrder(value) : call.reshape(extractAlong(call, value, *at, extent - 1, 1, 1), shape);
  };
  for (auto [value, type] : llvm::zip(scan.getResults(), scanned->types))
    results.push_back(call.result(call.cast(resultOf(value), type)));
  for (auto [value, assertion] : llvm::zip(scan.getResults().drop_front(operands.size()), assertions))
    tile::CheckOp::create(call.tracer.builder, assertion.loc, resultOf(value), assertion.message);
  return results;
}

} // namespace kiln

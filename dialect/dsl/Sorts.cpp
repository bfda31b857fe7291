// Sorts, top-k, gathers and histograms.

#include "dialect/dsl/Sorts.h"

#include "dialect/dsl/Tracer.h"
#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln {

/// The first `count` elements in order (all without a count), and their positions.
static std::array<Tile, 2> ordered(const char *name, const At &x, std::optional<int64_t> count, int axis,
                                   bool descending) {
  Call call(name, x.loc);
  mlir::Value value = call.value(x);
  const auto at = value ? axisOf(call, value, axis) : std::nullopt;
  if (!at || !checkArithmetic(call, value))
    return {call.poison(), call.poison()};
  Shape shape = shapeOf(value);
  if (count && (*count < 1 || *count > shape[*at])) {
    call.expected() << "a number of elements from 1 to " << shape[*at] << ", but got " << *count;
    return {call.poison(), call.poison()};
  }
  shape[*at] = count.value_or(shape[*at]);
  MLIRContext *const context = value.getContext();
  auto sort = call.emit<tile::SortOp>(typeOf(context, elementOf(value), shape), typeOf(context, i32, shape), value,
                                      mlir::Value(), *at, descending);
  tile::setUnsigned(sort, isUnsigned(elementOf(value)));
  return {call.result(sort.getResult()), call.result(call.of(i32, sort.getPositions()))};
}

Tile sort(At x, int axis, bool descending) { return ordered("sort", x, {}, axis, descending)[0]; }
std::array<Tile, 2> sort_at(At x, int axis, bool descending) { return ordered("sort_at", x, {}, axis, descending); }
std::array<Tile, 2> topk(At x, int64_t k, int axis) { return ordered("topk", x, k, axis, /*descending=*/true); }

/// An integer tile as i32, or as i64 if i32 may not hold its numbers. Reports an error and returns null for other
/// tiles.
static mlir::Value wholeNumbers(Call &call, const At &operand, const char *what) {
  mlir::Value value = call.value(operand);
  if (!value)
    return {};
  const Type type = elementOf(value);
  if (isFloat(type) || isPair(type) || shapeOf(value).empty())
    return call.expected() << what << ", but got " << describe(value);
  return call.cast(value, bytesOf(type) > 4 ? i64 : i32);
}

Tile gather(At x, At index, int axis) {
  Call call("gather", x.loc);
  mlir::Value source = call.value(x), places = source ? wholeNumbers(call, index, "positions of integers") : source;
  const auto at = places ? axisOf(call, source, axis) : std::nullopt;
  if (!at)
    return call.poison();
  Shape from = shapeOf(source), to = shapeOf(places);
  const int64_t extent = from[*at];
  bool fits = from.size() == to.size();
  if (fits) {
    from[*at] = to[*at];
    const auto both = broadcastShape(from, to);
    fits = both.has_value();
    from = to = both.value_or(Shape());
  }
  if (!fits)
    return call.expected() << "extents that agree except along axis " << *at << ", but got " << textOf(shapeOf(source))
                           << " and " << textOf(shapeOf(places));
  from[*at] = extent;
  source = call.broadcast(source, from);
  places = call.broadcast(places, to);
  const mlir::Type type = typeOf(source.getContext(), elementOf(source), to);
  return call.result(call.emit<tile::TakeOp>(type, source, places, *at));
}

Tile histogram(At x, int64_t bins, At mask) {
  Call call("histogram", x.loc);
  mlir::Value value = wholeNumbers(call, x, "a tile of integers");
  if (!value)
    return call.poison();
  if (bins < 1)
    return call.expected() << "1 bin or more, but got " << bins;
  const auto counted = maskOf(call, mask, shapeOf(value), shapeOf(value));
  if (!counted)
    return call.poison();
  return call.result(call.emit<tile::HistogramOp>(typeOf(value.getContext(), i32, {bins}), value, *counted));
}

} // namespace kiln

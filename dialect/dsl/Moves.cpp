// Functions that split and combine tiles, composed of `tile.extract`, broadcasts and selects.

#include "dialect/dsl/Tracer.h"

using namespace mlir;

namespace kiln {

/// x as a tile of rank 1 or more, and the nonnegative axis. Reports an error and returns none if there is no such axis.
static std::optional<std::pair<Tile, int>> withAxis(const char *name, const At &x, int axis) {
  Call call(name, x.loc);
  mlir::Value value = call.value(x);
  const auto at = value ? axisOf(call, value, axis) : std::nullopt;
  if (!at)
    return {};
  return std::pair(call.result(value), static_cast<int>(*at));
}

/// The largest rank of a tile.
static constexpr size_t maxDimensions = 5;

static Tile poisonOf(const char *name, Loc loc) { return Call(name, loc).poison(); }

Tile extract(At x, Shape begin, TileExtents shape, Shape steps) {
  Call call("extract", x.loc);
  mlir::Value value = call.value(x);
  if (!value || !call.checkShape(shape))
    return call.poison();
  const Shape from = shapeOf(value);
  if (steps.empty())
    steps.assign(from.size(), 1);
  for (const size_t count : {begin.size(), shape.size(), steps.size()})
    if (count != from.size() || from.empty())
      return call.expected() << "a begin, an extent and a step for each dimension of " << describe(value)
                             << ", but got " << count;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (steps[dim] == 0)
      return call.expected() << "steps that are not 0, but got one in dimension " << dim;
    int64_t last = 0;
    if (llvm::MulOverflow(shape[dim] - 1, steps[dim], last) || llvm::AddOverflow(begin[dim], last, last))
      return call.expected() << "positions from 0 to " << from[dim] - 1 << " in dimension " << dim << ", but got "
                             << begin[dim] << " and " << shape[dim] - 1 << " steps of " << steps[dim];
    if (std::min(begin[dim], last) < 0 || std::max(begin[dim], last) >= from[dim])
      return call.expected() << "positions from 0 to " << from[dim] - 1 << " in dimension " << dim << ", but got "
                             << begin[dim] << " to " << last;
  }
  const mlir::Type type = typeOf(value.getContext(), elementOf(value), shape);
  return call.result(call.emit<tile::ExtractOp>(type, value, ArrayRef<int64_t>(begin), ArrayRef<int64_t>(steps)));
}

Tile flip(At x, int axis) {
  const auto along = withAxis("flip", x, axis);
  if (!along)
    return poisonOf("flip", x.loc);
  const auto &[tile, at] = *along;
  const Shape shape = tile.shape(x.loc);
  Shape begin(shape.size(), 0), steps(shape.size(), 1);
  begin[at] = shape[at] - 1;
  steps[at] = -1;
  return extract(Line{x.loc}(tile), begin, shape, steps);
}

std::array<Tile, 2> split(At x) {
  const auto along = withAxis("split", x, -1);
  if (!along || along->first.extent(-1, x.loc) != 2) {
    Call call("split", x.loc);
    if (along)
      call.expected() << "a last extent of 2, but got " << textOf(along->first.shape(x.loc));
    return {call.poison(), call.poison()};
  }
  const auto &[tile, at] = *along;
  Shape shape = tile.shape(x.loc);
  shape.back() = 1;
  const auto half = [&, tile = tile](int64_t which) {
    Shape begin(shape.size(), 0), rest(shape.begin(), shape.end() - 1);
    begin.back() = which;
    return reshape(Line{x.loc}(extract(Line{x.loc}(tile), begin, shape)), rest);
  };
  return {half(0), half(1)};
}

/// Reports unless the parts agree in type, and in extents except along `axis`.
static bool checkParts(Call &call, ArrayRef<Tile> parts, size_t axis) {
  const Shape first = parts[0].shape(call.loc);
  for (const Tile &part : parts) {
    Shape shape = part.shape(call.loc);
    const bool fits = shape.size() == first.size();
    if (fits)
      shape[axis] = first[axis];
    if (fits && shape == first && part.type(call.loc) == parts[0].type(call.loc))
      continue;
    return call.expected() << "parts of one type, and of one shape except along axis " << static_cast<int64_t>(axis)
                           << ", but got " << nameOf(parts[0].type(call.loc)) << "[" << textOf(first) << "] and "
                           << nameOf(part.type(call.loc)) << "[" << textOf(part.shape(call.loc)) << "]";
  }
  return true;
}

/// The part repeated along the axis to `count` elements, rolled so that it begins at `begin`.
static Tile spread(const Line &at, const Tile &part, int axis, int64_t begin, int64_t count) {
  Shape shape = part.shape(at.loc), whole = shape;
  const int64_t copies = llvm::divideCeil(count, shape[axis]);
  whole[axis] = copies * shape[axis];
  int folded = axis;
  // The copies need one more dimension. If there is none, the dimensions before the axis and those after it are merged.
  if (shape.size() == maxDimensions) {
    const ArrayRef<int64_t> all = whole;
    shape = {llvm::product_of(all.take_front(axis)), shape[axis], llvm::product_of(all.drop_front(axis + 1))};
    folded = 1;
  }
  Shape more = shape;
  more.insert(more.begin() + folded, copies);
  const Tile once = shape.size() == whole.size() ? part : reshape(at(part), shape);
  const Tile repeated = reshape(at(broadcast(at(unsqueeze(at(once), folded)), more)), whole);
  whole[axis] = count;
  return roll(at(extract(at(repeated), Shape(whole.size(), 0), whole)), begin, axis);
}

/// 0, 1, … along an axis of a tile of rank `rank`, which broadcasts to it.
static Tile positionsAlong(const Line &at, int axis, size_t rank, int64_t extent) {
  Shape shape(rank, 1);
  shape[axis] = extent;
  return reshape(at(iota(extent, i32, at.loc)), shape);
}

Tile concat(const std::vector<At> &parts, int axis, Loc loc) {
  Call call("concat", loc);
  const Line at{loc};
  std::vector<Tile> tiles;
  int along = 0;
  for (const At &part : parts) {
    const auto found = withAxis("concat", at(call.result(call.value(part))), axis);
    if (!found)
      return call.poison();
    tiles.push_back(found->first);
    along = found->second;
  }
  if (tiles.empty())
    return call.expected() << "at least one part";
  if (!checkParts(call, tiles, along))
    return call.poison();
  int64_t count = 0, begin = 0;
  for (const Tile &tile : tiles)
    count += tile.extent(along, loc);
  Shape whole = tiles[0].shape(loc);
  whole[along] = count;
  if (!call.checkShape(whole) || tiles.size() == 1)
    return tiles.size() == 1 ? tiles[0] : call.poison();
  if (whole.size() < 5 && llvm::all_of(tiles, [&](const Tile &tile) { return tile.shape() == tiles[0].shape(); })) {
    // Parts of equal shape are joined along a new dimension.
    const auto number = static_cast<int64_t>(tiles.size());
    const Tile which = positionsAlong(at, along, whole.size() + 1, number);
    Tile result = unsqueeze(at(tiles[0]), along);
    for (int64_t part = 1; part < number; ++part)
      result = where(at(at(which) == at(part)), at(unsqueeze(at(tiles[part]), along)), at(result));
    return reshape(at(result), whole);
  }
  const Tile position = positionsAlong(at, along, whole.size(), count);
  Tile result;
  for (const Tile &tile : tiles) {
    const Tile moved = spread(at, tile, along, begin, count);
    result = begin == 0 ? moved : where(at(at(position) >= at(begin)), at(moved), at(result));
    begin += tile.extent(along, loc);
  }
  return result;
}

Tile join(At a, At b) {
  Call call("join", a.loc);
  Operands both = unify(call, {&a, &b});
  if (!both)
    return call.poison();
  const Line at{a.loc};
  const Tile left = call.result(both.values[0]), right = call.result(both.values[1]);
  if (left.shape(a.loc).size() == maxDimensions)
    return call.expected() << "tiles of rank " << maxDimensions - 1 << " or less, but got "
                           << textOf(left.shape(a.loc));
  return where(at(at(iota(2, i32, a.loc)) == at(0)), at(unsqueeze(at(left), -1)), at(unsqueeze(at(right), -1)));
}

Tile interleave(At a, At b) {
  Call call("interleave", a.loc);
  const Line at{a.loc};
  const Operands both = unify(call, {&a, &b});
  if (!both)
    return call.poison();
  Tile left = call.result(both.values[0]), right = call.result(both.values[1]);
  Shape shape = left.shape(a.loc);
  if (shape.empty())
    return call.expected() << "tiles of rank 1 or more";
  if (shape.size() == maxDimensions) { // join() needs one more
    const Shape rows = {llvm::product_of(ArrayRef<int64_t>(shape).drop_back()), shape.back()};
    left = reshape(at(left), rows);
    right = reshape(at(right), rows);
  }
  shape.back() *= 2;
  return reshape(at(join(at(left), at(right))), shape);
}

Tile pad(At x, Shape before, Shape after, At value) {
  Call call("pad", x.loc);
  const Line at{x.loc};
  mlir::Value from = call.value(x);
  if (!from)
    return call.poison();
  Tile tile = call.result(from);
  const size_t rank = shapeOf(from).size();
  const auto isCount = [](int64_t n) { return n >= 0 && n <= std::numeric_limits<int32_t>::max(); };
  if (before.size() != rank || after.size() != rank || !llvm::all_of(before, isCount) || !llvm::all_of(after, isCount))
    return call.expected() << "numbers of elements, from 0 to 2147483647, before and after each of "
                           << static_cast<int64_t>(rank) << " dimensions, but got " << textOf(before) << " and "
                           << textOf(after);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (before[dim] == 0 && after[dim] == 0)
      continue;
    const int axis = static_cast<int>(dim);
    const int64_t extent = tile.extent(axis, x.loc), count = before[dim] + extent + after[dim];
    const Tile position = positionsAlong(at, axis, rank, count), moved = spread(at, tile, axis, before[dim], count);
    const Tile inside = (at(position) >= at(before[dim])) & at(at(position) < at(before[dim] + extent));
    const Type type = tile.type(x.loc);
    tile = where(at(inside), at(moved), isPair(type) ? value : at(cast(value, type))); // no number is cast to a pair
  }
  return tile;
}

Tile insert(At x, At part, Shape begin) {
  Call call("insert", x.loc);
  const Line at{x.loc};
  mlir::Value whole = call.value(x), piece = call.value(part);
  if (!whole || !piece)
    return call.poison();
  const Shape shape = shapeOf(whole), inner = shapeOf(piece);
  bool fits = begin.size() == shape.size() && inner.size() == shape.size() && elementOf(whole) == elementOf(piece);
  for (size_t dim = 0; fits && dim < shape.size(); ++dim)
    fits = begin[dim] >= 0 && begin[dim] <= shape[dim] - inner[dim];
  if (!fits)
    return call.expected() << "a part of the type of " << describe(whole) << " that lies in it, but got "
                           << describe(piece) << " at " << textOf(begin);
  Tile moved = call.result(piece), inside;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int axis = static_cast<int>(dim);
    moved = spread(at, moved, axis, begin[dim], shape[dim]);
    const Tile position = positionsAlong(at, axis, shape.size(), shape[dim]);
    const Tile here = (at(position) >= at(begin[dim])) & at(at(position) < at(begin[dim] + inner[dim]));
    inside = dim == 0 ? here : at(inside) & at(here);
  }
  return where(at(inside), at(moved), at(call.result(whole)));
}

} // namespace kiln

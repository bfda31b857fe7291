// The functions that access memory: their subscripts, shapes and masks are converted to those of the operations.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln {

namespace {

/// The position of an access: a subscript for each dimension of the argument, and the shape of the index tiles among
/// them.
struct Place {
  SmallVector<mlir::Value> subscripts;
  SmallVector<bool> fixed; // for each scalar, whether select() fixed it
  Shape index;             // empty if every subscript is a scalar
  int blocks = 0;          // number of scalars not fixed by select()
  bool isIndexed = false;
  /// A subscript of a sliced dimension, and the extent of the slice.
  struct Within {
    size_t axis;
    mlir::Value subscript, extent;
    bool isNonNegative; // the subscript is a constant, not negative
  };
  SmallVector<Within, 1> within;

  /// The tile's shape with one extent for each scalar; `shape` without leading ones follows the index.
  Shape full(Shape shape) const {
    shape.insert(shape.begin(), blocks - shape.size(), 1);
    for (size_t i = 0; i < fixed.size(); ++i)
      if (fixed[i])
        shape.insert(shape.begin() + static_cast<ptrdiff_t>(i), 1);
    shape.insert(shape.begin(), index.begin(), index.end());
    return shape;
  }
};

} // namespace

/// A subscript: an i64 scalar, or a tile of i32 or i64. Otherwise reports an error and returns null.
static mlir::Value subscriptOf(Call &call, const At &written) {
  const At operand = Tracer::lasting(written);
  if (Tracer::literalOf(operand))
    return call.index(operand, "offset");
  mlir::Value value = call.value(operand);
  if (!value)
    return {};
  const Type type = elementOf(value);
  if (shapeOf(value).empty())
    return call.index(operand, "offset");
  if (!isInteger(type))
    return call.expected() << "integers as subscripts, but got " << describe(value);
  return bytesOf(type) < bytesOf(i32) ? call.cast(value, i32) : type == i32 ? value : call.position(value);
}

/// Converts subscripts of slices to subscripts of the argument, and records the slices in `place.within`. Reports an
/// error and returns false if a slice is not in scope.
static bool enterSlices(Call &call, const View &view, Place &place) {
  for (auto [axis, subscript] : llvm::enumerate(place.subscripts)) {
    const Selection::Slice *slice = Tracer::sliceOf(view, static_cast<int>(axis));
    if (!slice)
      continue;
    const mlir::Value begin = call.read(At(slice->begin, call.loc)), extent = call.read(At(slice->extent, call.loc));
    if (!begin || !extent)
      return false;
    const mlir::Value own = call.cast(subscript, i64);
    APInt number;
    const bool isNonNegative = matchPattern(own, m_ConstantInt(&number)) && number.isNonNegative();
    place.within.push_back({axis, own, extent, isNonNegative});
    subscript = call.emit<arith::AddIOp>(call.broadcast(begin, shapeOf(own)), own);
  }
  return true;
}

/// The subscripts of `view` and of the dimensions fixed by select(). Reports an error and returns none if they do not
/// fit.
static std::optional<Place> resolvePlace(Call &call, const View &view, const Offsets &at) {
  const int rank = view.rank();
  if (static_cast<int>(at.size()) != rank)
    return call.expected() << rank << (rank == 1 ? " offset" : " offsets") << " for a view of rank " << rank
                           << ", but got " << at.size();
  Place place;
  bool isPoison = false;
  call.follow(at);                 // C++ evaluates initialiser lists from left to right
  SmallVector<const Tile *> fixed; // for each subscript; null: it is in `at`
  const At *next = at.data();
  for (int dimension = 0; dimension < static_cast<int>(call.tracer.factsOf(view).extents.size()); ++dimension) {
    const Tile *index = fixed.emplace_back(Tracer::fixedAt(view, dimension));
    isPoison |= !place.subscripts.emplace_back(index ? call.tracer.read(*index, call.loc) : subscriptOf(call, *next++));
  }
  if (isPoison)
    return {};
  for (auto [subscript, index] : llvm::zip(place.subscripts, fixed)) {
    const Shape shape = shapeOf(subscript);
    if (shape.empty()) {
      place.fixed.push_back(index);
      place.blocks += index ? 0 : 1;
      continue;
    }
    const auto both = broadcastShape(place.index, shape);
    if (!both)
      return call.expected() << "subscripts of shapes that broadcast, but got " << textOf(place.index) << " and "
                             << textOf(shape);
    place.index = *both;
    place.isIndexed = true;
  }
  if (place.index.size() + place.fixed.size() > 5)
    return call.expected() << "subscripts of at most 5 dimensions together, but got tiles of shape "
                           << textOf(place.index) << " and " << place.fixed.size()
                           << (place.fixed.size() == 1 ? " scalar" : " scalars");
  for (mlir::Value &subscript : place.subscripts)
    if (!shapeOf(subscript).empty())
      subscript = call.broadcast(subscript, place.index);
  return enterSlices(call, view, place) ? std::optional(std::move(place)) : std::nullopt;
}

/// A mask of rank 1: whether position i of a block that begins at the subscript is inside the slice, for i below
/// `count`. Positions are compared as i32.
static mlir::Value blockWithin(Call &call, const Place::Within &within, int64_t count) {
  const auto number = [&](int64_t integer, Type type) {
    Literal literal;
    literal.integer = integer;
    return call.constant(literal, type, {});
  };
  const auto spread = [&](mlir::Value distance) { return call.broadcast(call.cast(distance, i32), {count}); };
  // The subscript is clamped first, so that no difference overflows.
  const mlir::Value near = call.emit<arith::MaxSIOp>(within.subscript, number(-count, i64)), zero = number(0, i64);
  const mlir::Value rest = call.emit<arith::SubIOp>(within.extent, near);
  const mlir::Value end = call.emit<arith::MinSIOp>(call.emit<arith::MaxSIOp>(rest, zero), number(count, i64));
  const mlir::Value lane = call.emit<tile::IotaOp>(typeOf(call.tracer.builder.getContext(), i32, {count}));
  const mlir::Value isBelow = call.emit<arith::CmpIOp>(arith::CmpIPredicate::slt, lane, spread(end));
  if (within.isNonNegative)
    return isBelow;
  const mlir::Value before = call.emit<arith::MaxSIOp>(call.emit<arith::SubIOp>(zero, near), zero);
  return call.emit<arith::AndIOp>(call.emit<arith::CmpIOp>(arith::CmpIPredicate::sge, lane, spread(before)), isBelow);
}

/// A mask of shape `full` for the elements that are inside all slices and, if there is a `mask`, in it. Null if there
/// is neither a slice nor a mask.
static mlir::Value maskWithin(Call &call, const Place &place, const Shape &full, mlir::Value mask) {
  for (const Place::Within &within : place.within) {
    mlir::Value inside;
    Shape shape(full.size(), 1);
    if (!shapeOf(within.subscript).empty()) {
      const mlir::Value extent = call.broadcast(within.extent, place.index);
      inside = call.emit<arith::CmpIOp>(arith::CmpIPredicate::ult, within.subscript, extent);
      std::copy(place.index.begin(), place.index.end(), shape.begin());
    } else {
      size_t dim = place.index.size();
      for (size_t before = 0; before < within.axis; ++before)
        dim += shapeOf(place.subscripts[before]).empty() ? 1 : 0;
      shape[dim] = full[dim];
      inside = blockWithin(call, within, full[dim]);
    }
    inside = call.broadcast(call.reshape(inside, shape), full);
    mask = mask ? call.emit<arith::AndIOp>(mask, inside).getResult() : inside;
  }
  return mask;
}

/// Whether blocks of that shape can begin at the position; otherwise reports an error. `hint` says how to leave out
/// dimensions of extent 1, if that makes the rank fit.
static bool checkBlocks(Call &call, const Place &place, const Shape &shape, const char *hint) {
  if (static_cast<int>(shape.size()) <= place.blocks)
    return true;
  if (std::ssize(shape) - std::count(shape.begin(), shape.end(), 1) > place.blocks)
    hint = "";
  if (place.isIndexed && place.blocks == 0)
    call.expected() << "no extents, because every subscript is a tile, but got shape " << textOf(shape)
                    << "; leave the extents out, or give the begin of a block: {n} instead of {n + iota(64)}";
  else if (place.isIndexed)
    call.expected() << "at most " << place.blocks << (place.blocks == 1 ? " extent" : " extents")
                    << ", one for each scalar subscript, but got shape " << textOf(shape) << hint;
  else
    call.expected() << "a tile of at most " << place.blocks << (place.blocks == 1 ? " dimension" : " dimensions")
                    << ", the rank of the view, but got shape " << textOf(shape) << hint;
  return false;
}

static bool checkPadding(Call &call, Padding padding, Type type) {
  if (padding == Padding::zero || (isFloat(type) && bytesOf(type) > 1))
    return true;
  return call.expected() << "padding zero on a view of " << nameOf(type) << ", but got "
                         << tile::stringifyPadding(static_cast<tile::Padding>(padding));
}

std::optional<mlir::Value> maskOf(Call &call, const At &written, const Shape &shape, const Shape &full) {
  const auto literal = Tracer::literalOf(written);
  if (literal && literal->isBoolean && literal->integer)
    return mlir::Value();
  mlir::Value mask = call.value(written);
  if (!mask)
    return {};
  if (elementOf(mask) != boolean) {
    call.expected() << "a boolean mask, but got " << describe(mask);
    return {};
  }
  const auto both = broadcastShape(shapeOf(mask), shape);
  if (both != shape) {
    call.expected() << "a mask that broadcasts to shape " << textOf(shape) << ", but got shape "
                    << textOf(shapeOf(mask));
    return {};
  }
  return call.reshape(call.broadcast(mask, shape), full);
}

/// The stored value: a number or a tile of the view's type.
static mlir::Value storedValue(Call &call, const View &view, const At &value) {
  mlir::Value stored = call.valueAs(value, view.type());
  if (stored && elementOf(stored) != view.type())
    return call.expected() << "a tile of the view's type " << nameOf(view.type()) << ", but got " << describe(stored)
                           << "; use cast(), or launch with " << call.tracer.kernel.called(view.index()) << " of type "
                           << nameOf(elementOf(stored));
  return stored;
}

static void setCache(mlir::Operation *op, Cache cache) {
  if (cache != Cache::evict_normal)
    op->setAttr(tile::cacheName, StringAttr::get(op->getContext(), cache == Cache::evict_first ? "stream" : "keep"));
}

/// Whether all examples of a batch have this view.
static bool isOfAllExamples(Call &call, const View &view) {
  for (const Example *example = call.tracer.example; example; example = example->outer)
    if (llvm::is_contained(example->shared, view.index()))
      return true;
  return false;
}

/// Programs of all examples access a view that they share, so the scope is at least the device there.
static void setScope(Call &call, const View &view, mlir::Operation *op, Scope scope) {
  if (scope == Scope::block && isOfAllExamples(call, view))
    scope = Scope::device;
  if (scope != Scope::device)
    op->setAttr(tile::scopeName, StringAttr::get(op->getContext(), scope == Scope::block ? "block" : "system"));
}

// --- Loads -----------------------------------------------------------------------------------------------------------

/// The index's shape followed by the requested shape of blocks.
static Shape resultShape(const Place &place, Shape shape) {
  shape.insert(shape.begin(), place.index.begin(), place.index.end());
  return shape;
}

static Tile read(Call &call, const View &view, const Offsets &at, const Shape &shape, const LoadOptions &how) {
  const auto place = resolvePlace(call, view, at);
  if (!place || !checkBlocks(call, *place, shape, "; leave out extents of 1") || !call.checkShape(shape) ||
      !checkPadding(call, how.padding, view.type()))
    return call.poison();
  const Shape wanted = resultShape(*place, shape), full = place->full(shape);
  auto mask = maskOf(call, how.mask, wanted, full);
  if (!mask)
    return call.poison();
  mask = maskWithin(call, *place, full, *mask);
  mlir::Value source = call.tracer.valueOf(view), tile;
  const mlir::Type type = typeOf(source.getContext(), view.type(), full);
  const auto padding = static_cast<tile::Padding>(how.padding);
  if (place->isIndexed || *mask)
    tile = call.emit<tile::GatherOp>(type, source, place->subscripts, *mask, padding);
  else
    tile = call.emit<tile::LoadOp>(type, source, place->subscripts, padding);
  setCache(tile.getDefiningOp(), how.cache);
  call.effects.read.push_back(view.index());
  return call.result(call.reshape(call.of(view.type(), tile), wanted));
}

Tile load(View view, Offsets at, TileExtents shape, LoadOptions how, Loc loc) {
  Call call("load", loc);
  return read(call, view, at, shape, how);
}

Tile load(View view, Offsets at, TileExtents shape, Padding padding, Loc loc) {
  return load(view, std::move(at), std::move(shape), LoadOptions{.padding = padding}, loc);
}

Tile atomic_load(View view, Offsets at, TileExtents shape, Order order, AtomicOptions how, Loc loc) {
  Call call("atomic_load", loc);
  const auto place = resolvePlace(call, view, at);
  if (!place || !checkBlocks(call, *place, shape, "; leave out extents of 1") || !call.checkShape(shape))
    return call.poison();
  if (order != Order::relaxed && order != Order::acquire)
    return call.expected() << "order relaxed or acquire, but got "
                           << tile::stringifyMemoryOrder(static_cast<tile::MemoryOrder>(order));
  mlir::Value source = call.tracer.valueOf(view);
  const Shape wanted = resultShape(*place, shape), full = place->full(shape);
  const auto mask = maskOf(call, how.mask, wanted, full);
  if (!mask)
    return call.poison();
  auto tile = call.emit<tile::AtomicLoadOp>(typeOf(source.getContext(), view.type(), full),
                                            static_cast<tile::MemoryOrder>(order), source, place->subscripts,
                                            maskWithin(call, *place, full, *mask));
  setScope(call, view, tile, how.scope);
  call.effects.changed.push_back(view.index()); // treated as changing memory, so that accesses keep their order
  return call.result(call.reshape(call.of(view.type(), tile), wanted));
}

// --- Stores and atomics ----------------------------------------------------------------------------------------------

namespace {
/// A store's values, in the operation's shape, and its mask.
struct Written {
  Place place;
  SmallVector<mlir::Value, 2> values;
  mlir::Value mask;
  Shape shape; // of the values as passed by the caller
};
} // namespace

/// The shape of values of `shape` at the position. Reports an error and returns none if they do not fit.
static std::optional<Shape> writtenShape(Call &call, const Place &place, const Shape &shape) {
  if (!place.isIndexed)
    return checkBlocks(call, place, shape, "; use squeeze()") ? std::optional(shape) : std::nullopt;
  if (shape.size() <= place.index.size()) { // blocks of one element
    if (broadcastShape(shape, place.index) == place.index)
      return place.index;
  } else if (std::equal(place.index.begin(), place.index.end(), shape.begin())) {
    const Shape blocks(shape.begin() + place.index.size(), shape.end());
    const bool fits = checkBlocks(call, place, blocks, "; use squeeze()");
    return fits ? std::optional(shape) : std::nullopt;
  }
  return call.expected() << "a value that begins with the subscripts' shape " << textOf(place.index)
                         << ", but got shape " << textOf(shape);
}

/// Converts `values` and the mask to the operation's shape. Reports an error and returns none if they do not fit.
static std::optional<Written> written(Call &call, const View &view, const Offsets &at, ArrayRef<const At *> values,
                                      const At &chosen) {
  Written result;
  bool isPoison = false;
  for (const At *value : values)
    isPoison |= !result.values.emplace_back(storedValue(call, view, *value));
  auto place = resolvePlace(call, view, at);
  if (isPoison || !place)
    return {};
  for (mlir::Value value : result.values) {
    auto shape = broadcastShape(result.shape, shapeOf(value));
    if (!shape)
      return call.expected() << "shapes that broadcast, but got " << textOf(result.shape) << " and "
                             << textOf(shapeOf(value));
    result.shape = *shape;
  }
  auto shape = writtenShape(call, *place, result.shape);
  if (!shape)
    return {};
  const Shape full = place->full(Shape(shape->begin() + place->index.size(), shape->end()));
  auto mask = maskOf(call, chosen, *shape, full);
  if (!mask)
    return {};
  for (mlir::Value &value : result.values)
    value = call.reshape(call.broadcast(value, *shape), full);
  result.mask = maskWithin(call, *place, full, *mask);
  result.place = std::move(*place);
  result.shape = *shape;
  return result;
}

/// Reports if all examples of a batch would write one view.
static bool checkWritten(Call &call, const View &view) {
  if (!isOfAllExamples(call, view))
    return true;
  return call.expected() << "a view that vmap batches, but got " << call.tracer.kernel.called(view.index())
                         << ", which all examples would write; batch it, or add to it by atomic_add()";
}

static void write(Call &call, const View &view, const Offsets &at, const At &value, const StoreOptions &how) {
  auto what = written(call, view, at, &value, how.mask);
  if (!what || !checkWritten(call, view))
    return;
  mlir::Value target = call.tracer.valueOf(view);
  if (what->place.isIndexed || what->mask)
    setCache(call.emit<tile::ScatterOp>(what->values[0], target, what->place.subscripts, what->mask), how.cache);
  else
    setCache(call.emit<tile::StoreOp>(what->values[0], target, what->place.subscripts), how.cache);
}

void store(View view, Offsets at, At value, StoreOptions how, Loc loc) {
  Call call("store", loc);
  write(call, view, at, value, how);
}

void atomic_store(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  Call call("atomic_store", loc);
  if (order != Order::relaxed && order != Order::release) {
    call.expected() << "order relaxed or release, but got "
                    << tile::stringifyMemoryOrder(static_cast<tile::MemoryOrder>(order));
    return;
  }
  if (auto what = written(call, view, at, &value, how.mask))
    setScope(call, view,
             call.emit<tile::AtomicStoreOp>(static_cast<tile::MemoryOrder>(order), what->values[0],
                                            call.tracer.valueOf(view), what->place.subscripts, what->mask),
             how.scope);
}

/// Whether the view's elements may be accessed like this; otherwise reports an error.
static bool checkAtomic(Call &call, const View &view, tile::AtomicUse use) {
  mlir::Type element = typeOf(call.tracer.builder.getContext(), view.type());
  if (tile::isAtomic(use, element))
    return true;
  return call.expected() << "a view of " << tile::atomicElements(use) << ", but got " << nameOf(view.type());
}

static Tile resultOf(Call &call, const View &view, const Written &what, mlir::Value before) {
  call.effects.changed.push_back(view.index());
  return call.result(call.reshape(before, what.shape));
}

static bool isOrdered(tile::AtomicKind kind) { return kind == tile::AtomicKind::Min || kind == tile::AtomicKind::Max; }

static Tile change(const char *name, tile::AtomicKind kind, const View &view, const Offsets &at, const At &value,
                   Order order, const AtomicOptions &how, Loc loc) {
  Call call(name, loc);
  auto what = written(call, view, at, &value, how.mask);
  if (!what || !checkAtomic(call, view, static_cast<tile::AtomicUse>(kind)))
    return call.poison();
  auto op =
      call.emit<tile::AtomicRmwOp>(what->values[0].getType(), kind, static_cast<tile::MemoryOrder>(order),
                                   what->values[0], call.tracer.valueOf(view), what->place.subscripts, what->mask);
  tile::setUnsigned(op, isUnsigned(view.type()) && isOrdered(kind));
  setScope(call, view, op, how.scope);
  return resultOf(call, view, *what, op);
}

Tile atomic_add(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_add", tile::AtomicKind::Add, view, at, value, order, how, loc);
}
Tile atomic_min(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_min", tile::AtomicKind::Min, view, at, value, order, how, loc);
}
Tile atomic_max(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_max", tile::AtomicKind::Max, view, at, value, order, how, loc);
}
Tile atomic_and(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_and", tile::AtomicKind::And, view, at, value, order, how, loc);
}
Tile atomic_or(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_or", tile::AtomicKind::Or, view, at, value, order, how, loc);
}
Tile atomic_xor(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_xor", tile::AtomicKind::Xor, view, at, value, order, how, loc);
}
Tile atomic_exchange(View view, Offsets at, At value, Order order, AtomicOptions how, Loc loc) {
  return change("atomic_exchange", tile::AtomicKind::Exchange, view, at, value, order, how, loc);
}

Tile atomic_compare_exchange(View view, Offsets at, At expected, At desired, Order order, AtomicOptions how, Loc loc) {
  Call call("atomic_compare_exchange", loc);
  auto what = written(call, view, at, {&expected, &desired}, how.mask);
  if (!what || !checkAtomic(call, view, tile::AtomicUse::compare))
    return call.poison();
  auto op =
      call.emit<tile::AtomicCasOp>(what->values[0].getType(), static_cast<tile::MemoryOrder>(order), what->values[0],
                                   what->values[1], call.tracer.valueOf(view), what->place.subscripts, what->mask);
  setScope(call, view, op, how.scope);
  return resultOf(call, view, *what, op);
}

} // namespace kiln

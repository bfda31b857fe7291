// The verbs that touch memory: subscripts, shapes and masks become those of the operations.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln {

namespace {

/// Where an access goes: a subscript for each dimension of the argument, and the shape of the tiles of positions among
/// them.
struct Place {
  SmallVector<mlir::Value> subscripts;
  SmallVector<bool> fixed; // for each that is a scalar whether select() has fixed it
  Shape index;             // empty where every subscript is a scalar
  int blocks = 0;          // scalars that are not fixed
  bool isNamed = false;

  /// The tile's shape with one extent for each scalar: `shape` without leading ones is what follows the index.
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

/// A subscript: an i64 scalar, or a tile of i32 or i64. Null, reported, when it is neither.
static mlir::Value subscriptOf(Verb &verb, const At &written) {
  const At operand = Tracer::lasting(written);
  if (Tracer::literalOf(operand))
    return verb.index(operand, "offset");
  mlir::Value value = verb.value(operand);
  if (!value)
    return {};
  const Type type = elementOf(value);
  if (shapeOf(value).empty())
    return verb.index(operand, "offset");
  if (isFloat(type) || type == boolean) {
    verb.expected() << "integers as subscripts, but got " << describe(value);
    return {};
  }
  return bytesOf(type) < bytesOf(i32) ? verb.cast(value, i32) : type == i32 ? value : verb.position(value);
}

/// The subscripts of `view` and of the dimensions that select() has fixed; nothing, reported, when they do not fit.
static std::optional<Place> placeOf(Verb &verb, const View &view, const Offsets &at) {
  const int rank = view.rank();
  if (static_cast<int>(at.size()) != rank) {
    verb.expected() << rank << (rank == 1 ? " offset" : " offsets") << " for a view of rank " << rank << ", but got "
                    << at.size();
    return {};
  }
  Place place;
  bool isPoison = false;
  verb.follow(at);                 // C++ computes what stands in braces from left to right
  SmallVector<const Tile *> fixed; // for each subscript; null where `at` has it
  const At *next = at.data();
  for (int dimension = 0; dimension < static_cast<int>(verb.tracer.factsOf(view).extents.size()); ++dimension) {
    const Tile *index = fixed.emplace_back(Tracer::fixedAt(view, dimension));
    isPoison |= !place.subscripts.emplace_back(index ? verb.tracer.read(*index, verb.loc) : subscriptOf(verb, *next++));
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
    if (!both) {
      verb.expected() << "subscripts of shapes that broadcast, but got " << textOf(place.index) << " and "
                      << textOf(shape);
      return {};
    }
    place.index = *both;
    place.isNamed = true;
  }
  if (place.index.size() + place.fixed.size() > 5) {
    verb.expected() << "subscripts of at most 5 dimensions together, but got tiles of shape " << textOf(place.index)
                    << " and " << place.fixed.size() << (place.fixed.size() == 1 ? " scalar" : " scalars");
    return {};
  }
  for (mlir::Value &subscript : place.subscripts)
    if (!shapeOf(subscript).empty())
      subscript = verb.broadcast(subscript, place.index);
  return place;
}

/// Whether blocks of that shape begin at the place; reported when they do not.
static bool checkBlocks(Verb &verb, const Place &place, const Shape &shape) {
  if (static_cast<int>(shape.size()) <= place.blocks)
    return true;
  if (place.isNamed)
    verb.expected() << "an extent for each of the " << place.blocks
                    << " subscripts that are scalars at most, but got shape " << textOf(shape);
  else
    verb.expected() << "a tile of at most the view's rank " << place.blocks << ", but got shape " << textOf(shape);
  return false;
}

static bool checkPadding(Verb &verb, Padding padding, Type type) {
  if (padding == Padding::zero || (isFloat(type) && bytesOf(type) > 1))
    return true;
  verb.expected() << "padding zero on a view of " << nameOf(type) << ", but got "
                  << tile::stringifyPadding(static_cast<tile::Padding>(padding));
  return false;
}

std::optional<mlir::Value> maskOf(Verb &verb, const At &written, const Shape &shape, const Shape &full) {
  const auto literal = Tracer::literalOf(written);
  if (literal && literal->isTruth && literal->integer)
    return mlir::Value();
  mlir::Value mask = verb.value(written);
  if (!mask)
    return {};
  if (elementOf(mask) != boolean) {
    verb.expected() << "a boolean mask, but got " << describe(mask);
    return {};
  }
  const auto both = broadcastShape(shapeOf(mask), shape);
  if (both != shape) {
    verb.expected() << "a mask that broadcasts to shape " << textOf(shape) << ", but got shape "
                    << textOf(shapeOf(mask));
    return {};
  }
  return verb.reshape(verb.broadcast(mask, shape), full);
}

/// The value to write: a number or a tile of the view's type.
static mlir::Value storedValue(Verb &verb, const View &view, const At &value) {
  mlir::Value stored = verb.valueAs(value, view.type());
  if (stored && elementOf(stored) != view.type()) {
    verb.expected() << "a tile of the view's type " << nameOf(view.type()) << ", but got " << describe(stored)
                    << "; use cast()";
    return {};
  }
  return stored;
}

static void setCache(mlir::Operation *op, Cache cache) {
  if (cache != Cache::usual)
    op->setAttr(tile::cacheName, StringAttr::get(op->getContext(), cache == Cache::stream ? "stream" : "keep"));
}
/// Reports what asks an atomic for a cache: it is done where all programs see it, whatever is wanted.
static bool checkNoCache(Verb &verb, Cache cache) {
  if (cache == Cache::usual)
    return true;
  verb.expected() << "no hint for caches on an atomic, but got Cache::" << (cache == Cache::stream ? "stream" : "keep");
  return false;
}

// --- Loads -----------------------------------------------------------------------------------------------------------

/// The blocks' shape as it was asked for, behind that of the index.
static Shape resultShape(const Place &place, Shape shape) {
  shape.insert(shape.begin(), place.index.begin(), place.index.end());
  return shape;
}

static Tile read(Verb &verb, const View &view, const Offsets &at, const Shape &shape, const Reading &how) {
  const auto place = placeOf(verb, view, at);
  if (!place || !checkBlocks(verb, *place, shape) || !verb.checkShape(shape) ||
      !checkPadding(verb, how.padding, view.type()))
    return verb.poison();
  const Shape wanted = resultShape(*place, shape), full = place->full(shape);
  const auto mask = maskOf(verb, how.mask, wanted, full);
  if (!mask)
    return verb.poison();
  mlir::Value source = verb.tracer.valueOf(view), tile;
  const mlir::Type type = typeOf(source.getContext(), view.type(), full);
  const auto padding = static_cast<tile::Padding>(how.padding);
  if (place->isNamed || *mask)
    tile = verb.emit<tile::GatherOp>(type, source, place->subscripts, *mask, padding);
  else
    tile = verb.emit<tile::LoadOp>(type, source, place->subscripts, padding);
  setCache(tile.getDefiningOp(), how.cache);
  verb.effects.read.push_back(view.index());
  return verb.result(verb.reshape(verb.of(view.type(), tile), wanted));
}

Tile load(View view, Offsets at, TileExtents shape, Reading how, Loc loc) {
  Verb verb("load", loc);
  return read(verb, view, at, shape, how);
}

Tile load(View view, Offsets at, TileExtents shape, Padding padding, Loc loc) {
  return load(view, std::move(at), std::move(shape), Reading{.padding = padding}, loc);
}

Tile gather(View view, At rows, Offsets offsets, TileExtents shape, Padding padding, Loc loc) {
  Verb verb("gather", loc);
  offsets.insert(offsets.begin(), rows);
  return read(verb, view, offsets, shape, {.padding = padding});
}

Tile atomic_load(View view, Offsets at, TileExtents shape, Order order, Loc loc) {
  Verb verb("atomic_load", loc);
  const auto place = placeOf(verb, view, at);
  if (!place || !checkBlocks(verb, *place, shape) || !verb.checkShape(shape))
    return verb.poison();
  if (order != Order::relaxed && order != Order::acquire) {
    verb.expected() << "order relaxed or acquire, but got "
                    << tile::stringifyMemoryOrder(static_cast<tile::MemoryOrder>(order));
    return verb.poison();
  }
  mlir::Value source = verb.tracer.valueOf(view);
  mlir::Value tile =
      verb.emit<tile::AtomicLoadOp>(typeOf(source.getContext(), view.type(), place->full(shape)),
                                    static_cast<tile::MemoryOrder>(order), source, place->subscripts, mlir::Value());
  verb.effects.changed.push_back(view.index()); // others do: no two of them may change places
  return verb.result(verb.reshape(verb.of(view.type(), tile), resultShape(*place, shape)));
}

// --- Stores and atomics ----------------------------------------------------------------------------------------------

namespace {
/// What is written, and where: values of the operation's shape, and its mask.
struct Written {
  Place place;
  SmallVector<mlir::Value, 2> values;
  mlir::Value mask;
  Shape shape; // of the values as the verb got them
};
} // namespace

/// The shape of values of `shape` at the place; nothing, reported, when they do not fit.
static std::optional<Shape> writtenShape(Verb &verb, const Place &place, const Shape &shape) {
  if (!place.isNamed)
    return checkBlocks(verb, place, shape) ? std::optional(shape) : std::nullopt;
  if (shape.size() <= place.index.size()) { // a block is one element
    if (broadcastShape(shape, place.index) == place.index)
      return place.index;
  } else if (std::equal(place.index.begin(), place.index.end(), shape.begin())) {
    const bool fits = checkBlocks(verb, place, Shape(shape.begin() + place.index.size(), shape.end()));
    return fits ? std::optional(shape) : std::nullopt;
  }
  verb.expected() << "a value that begins with the subscripts' shape " << textOf(place.index) << ", but got shape "
                  << textOf(shape);
  return {};
}

/// Brings `values` and the mask to the place; nothing, reported, when something does not fit.
static std::optional<Written> written(Verb &verb, const View &view, const Offsets &at, ArrayRef<const At *> values,
                                      const Writing &how) {
  Written result;
  bool isPoison = false;
  for (const At *value : values)
    isPoison |= !result.values.emplace_back(storedValue(verb, view, *value));
  auto place = placeOf(verb, view, at);
  if (isPoison || !place)
    return {};
  for (mlir::Value value : result.values) {
    auto shape = broadcastShape(result.shape, shapeOf(value));
    if (!shape) {
      verb.expected() << "shapes that broadcast, but got " << textOf(result.shape) << " and " << textOf(shapeOf(value));
      return {};
    }
    result.shape = *shape;
  }
  auto shape = writtenShape(verb, *place, result.shape);
  if (!shape)
    return {};
  const Shape full = place->full(Shape(shape->begin() + place->index.size(), shape->end()));
  auto mask = maskOf(verb, how.mask, *shape, full);
  if (!mask)
    return {};
  for (mlir::Value &value : result.values)
    value = verb.reshape(verb.broadcast(value, *shape), full);
  result.place = std::move(*place);
  result.mask = *mask;
  result.shape = *shape;
  return result;
}

/// Reports when all examples of a batch would write a view at once.
static bool checkWritten(Verb &verb, const View &view) {
  for (const Example *example = verb.tracer.example; example; example = example->outer)
    if (llvm::is_contained(example->shared, view.index())) {
      verb.expected() << "a view that vmap batches, but got " << verb.tracer.kernel.called(view.index())
                      << ", which all examples would write; batch it, or add to it by atomic_add()";
      return false;
    }
  return true;
}

static void write(Verb &verb, const View &view, const Offsets &at, const At &value, const Writing &how) {
  auto what = written(verb, view, at, &value, how);
  if (!what || !checkWritten(verb, view))
    return;
  mlir::Value target = verb.tracer.valueOf(view);
  if (what->place.isNamed || what->mask)
    setCache(verb.emit<tile::ScatterOp>(what->values[0], target, what->place.subscripts, what->mask), how.cache);
  else
    setCache(verb.emit<tile::StoreOp>(what->values[0], target, what->place.subscripts), how.cache);
}

void store(View view, Offsets at, At value, Writing how, Loc loc) {
  Verb verb("store", loc);
  write(verb, view, at, value, how);
}

void scatter(View view, At rows, Offsets offsets, At value, Loc loc) {
  Verb verb("scatter", loc);
  offsets.insert(offsets.begin(), rows);
  write(verb, view, offsets, value, {});
}

void atomic_store(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  Verb verb("atomic_store", loc);
  if (order != Order::relaxed && order != Order::release) {
    verb.expected() << "order relaxed or release, but got "
                    << tile::stringifyMemoryOrder(static_cast<tile::MemoryOrder>(order));
    return;
  }
  if (!checkNoCache(verb, how.cache))
    return;
  if (auto what = written(verb, view, at, &value, how))
    verb.emit<tile::AtomicStoreOp>(static_cast<tile::MemoryOrder>(order), what->values[0], verb.tracer.valueOf(view),
                                   what->place.subscripts, what->mask);
}

/// Whether elements of the view may be used so; reported when they may not.
static bool checkAtomic(Verb &verb, const View &view, tile::AtomicUse use) {
  mlir::Type element = typeOf(verb.tracer.builder.getContext(), view.type());
  if (tile::isAtomic(use, element))
    return true;
  verb.expected() << "a view of " << tile::atomicElements(use) << ", but got " << nameOf(view.type());
  return false;
}

static Tile resultOf(Verb &verb, const View &view, const Written &what, mlir::Value before) {
  verb.effects.changed.push_back(view.index());
  return verb.result(verb.reshape(before, what.shape));
}

static bool isOrdered(tile::AtomicKind kind) { return kind == tile::AtomicKind::Min || kind == tile::AtomicKind::Max; }

static Tile change(const char *name, tile::AtomicKind kind, const View &view, const Offsets &at, const At &value,
                   Order order, const Writing &how, Loc loc) {
  Verb verb(name, loc);
  if (!checkNoCache(verb, how.cache))
    return verb.poison();
  auto what = written(verb, view, at, &value, how);
  if (!what || !checkAtomic(verb, view, static_cast<tile::AtomicUse>(kind)))
    return verb.poison();
  auto op =
      verb.emit<tile::AtomicRmwOp>(what->values[0].getType(), kind, static_cast<tile::MemoryOrder>(order),
                                   what->values[0], verb.tracer.valueOf(view), what->place.subscripts, what->mask);
  tile::setUnsigned(op, isUnsigned(view.type()) && isOrdered(kind));
  return resultOf(verb, view, *what, op);
}

Tile atomic_add(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_add", tile::AtomicKind::Add, view, at, value, order, how, loc);
}
Tile atomic_min(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_min", tile::AtomicKind::Min, view, at, value, order, how, loc);
}
Tile atomic_max(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_max", tile::AtomicKind::Max, view, at, value, order, how, loc);
}
Tile atomic_and(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_and", tile::AtomicKind::And, view, at, value, order, how, loc);
}
Tile atomic_or(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_or", tile::AtomicKind::Or, view, at, value, order, how, loc);
}
Tile atomic_xor(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_xor", tile::AtomicKind::Xor, view, at, value, order, how, loc);
}
Tile atomic_exchange(View view, Offsets at, At value, Order order, Writing how, Loc loc) {
  return change("atomic_exchange", tile::AtomicKind::Exchange, view, at, value, order, how, loc);
}

Tile atomic_compare_exchange(View view, Offsets at, At expected, At desired, Order order, Writing how, Loc loc) {
  Verb verb("atomic_compare_exchange", loc);
  if (!checkNoCache(verb, how.cache))
    return verb.poison();
  auto what = written(verb, view, at, {&expected, &desired}, how);
  if (!what || !checkAtomic(verb, view, tile::AtomicUse::compare))
    return verb.poison();
  return resultOf(verb, view, *what,
                  verb.emit<tile::AtomicCasOp>(what->values[0].getType(), static_cast<tile::MemoryOrder>(order),
                                               what->values[0], what->values[1], verb.tracer.valueOf(view),
                                               what->place.subscripts, what->mask));
}

} // namespace kiln

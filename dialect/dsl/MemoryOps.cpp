// Views and the verbs that touch memory, random numbers, print and check.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln {

// --- View ------------------------------------------------------------------------------------------------------------

Type View::type() const { return Tracer::current().factsOf(*this).type; }
int View::rank() const { return static_cast<int>(Tracer::current().factsOf(*this).extents.size()); }

static bool checkAxis(Verb &verb, const View &view, int axis) {
  if (axis >= 0 && axis < view.rank())
    return true;
  verb.expected() << "a dimension from 0 to " << view.rank() - 1 << ", but got " << axis;
  return false;
}

Tile View::dim(int axis, Loc loc) const {
  Verb verb("dim", loc);
  if (!checkAxis(verb, *this, axis))
    return verb.poison();
  return verb.result(verb.emit<tile::DimOp>(verb.tracer.valueOf(*this), axis));
}

int64_t View::extent(int axis, Loc loc) const {
  Verb verb("extent", loc);
  if (!checkAxis(verb, *this, axis))
    throw Abandoned();
  verb.tracer.ask(*this, axis);
  return verb.tracer.factsOf(*this).extents[axis];
}

// --- Loads and stores ------------------------------------------------------------------------------------------------

/// The offsets as i64 values, `count` of them; nothing, reported, when they do not fit.
static std::optional<SmallVector<mlir::Value>> offsetsOf(Verb &verb, const Offsets &offsets, int count, int rank) {
  if (static_cast<int>(offsets.size()) != count) {
    verb.expected() << count << (count == 1 ? " offset" : " offsets") << " for a view of rank " << rank << ", but got "
                    << offsets.size();
    return {};
  }
  SmallVector<mlir::Value> values;
  bool isPoison = false;
  verb.follow(offsets); // C++ computes what stands in braces from left to right
  for (const At &offset : offsets)
    isPoison |= !values.emplace_back(verb.index(Tracer::lasting(offset), "offset"));
  if (isPoison)
    return {};
  return values;
}

/// Shape with leading extents of 1 up to `rank`; nothing, reported, when it has more dimensions.
static std::optional<Shape> fullShape(Verb &verb, Shape shape, size_t rank) {
  if (shape.size() > rank) {
    verb.expected() << "a tile of at most the view's rank " << rank << ", but got shape " << textOf(shape);
    return {};
  }
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return shape;
}

static bool checkPadding(Verb &verb, Padding padding, Type type) {
  if (padding == Padding::zero || isFloat(type))
    return true;
  verb.expected() << "padding zero on a view of " << nameOf(type) << ", but got "
                  << tile::stringifyPadding(static_cast<tile::Padding>(padding));
  return false;
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

Tile load(View view, Offsets offsets, TileExtents shape, Padding padding, Loc loc) {
  Verb verb("load", loc);
  auto at = offsetsOf(verb, offsets, view.rank(), view.rank());
  auto full = fullShape(verb, shape, view.rank());
  if (!at || !full || !verb.checkShape(*full) || !checkPadding(verb, padding, view.type()))
    return verb.poison();
  mlir::Value source = verb.tracer.valueOf(view);
  mlir::Value tile = verb.emit<tile::LoadOp>(typeOf(source.getContext(), view.type(), *full), source, *at,
                                             static_cast<tile::Padding>(padding));
  verb.effects.read.push_back(view.index());
  return verb.result(verb.reshape(tile, shape));
}

void store(View view, Offsets offsets, At value, Loc loc) {
  Verb verb("store", loc);
  auto at = offsetsOf(verb, offsets, view.rank(), view.rank());
  mlir::Value stored = storedValue(verb, view, value);
  if (!at || !stored)
    return;
  if (auto full = fullShape(verb, shapeOf(stored), view.rank()))
    verb.emit<tile::StoreOp>(verb.reshape(stored, *full), verb.tracer.valueOf(view), *at);
}

/// The row indices of a gather or scatter; null, reported, when they are no i32 or i64 tile of rank 1.
static mlir::Value rowsOf(Verb &verb, const At &rows) {
  mlir::Value value = verb.value(rows);
  if (!value)
    return {};
  if (shapeOf(value).size() != 1 || (elementOf(value) != i32 && elementOf(value) != i64)) {
    verb.expected() << "row indices as an i32 or i64 tile of rank 1, but got " << describe(value);
    return {};
  }
  return value;
}

Tile gather(View view, At rows, Offsets offsets, TileExtents shape, Padding padding, Loc loc) {
  Verb verb("gather", loc);
  mlir::Value indices = rowsOf(verb, rows);
  auto at = offsetsOf(verb, offsets, view.rank() - 1, view.rank());
  auto full = fullShape(verb, shape, view.rank() - 1);
  if (!indices || !at || !full || !verb.checkShape(*full) || !checkPadding(verb, padding, view.type()))
    return verb.poison();
  full->insert(full->begin(), shapeOf(indices)[0]);
  shape.insert(shape.begin(), shapeOf(indices)[0]);
  mlir::Value source = verb.tracer.valueOf(view);
  mlir::Value tile = verb.emit<tile::GatherOp>(typeOf(source.getContext(), view.type(), *full), source, indices, *at,
                                               static_cast<tile::Padding>(padding));
  verb.effects.read.push_back(view.index());
  return verb.result(verb.reshape(tile, shape));
}

void scatter(View view, At rows, Offsets offsets, At value, Loc loc) {
  Verb verb("scatter", loc);
  mlir::Value indices = rowsOf(verb, rows), stored = storedValue(verb, view, value);
  auto at = offsetsOf(verb, offsets, view.rank() - 1, view.rank());
  if (!indices || !stored || !at)
    return;
  Shape shape = shapeOf(stored);
  int64_t count = shapeOf(indices)[0];
  if (shape.empty() || shape[0] != count) {
    verb.expected() << "one row for each of the " << count << " indices, but got " << describe(stored);
    return;
  }
  auto full = fullShape(verb, Shape(shape.begin() + 1, shape.end()), view.rank() - 1);
  if (!full)
    return;
  full->insert(full->begin(), count);
  verb.emit<tile::ScatterOp>(verb.reshape(stored, *full), verb.tracer.valueOf(view), indices, *at);
}

Tile atomic_add(View view, Offsets offsets, At value, Order order, Loc loc) {
  Verb verb("atomic_add", loc);
  auto at = offsetsOf(verb, offsets, view.rank(), view.rank());
  mlir::Value added = storedValue(verb, view, value);
  if (!at || !added)
    return verb.poison();
  Type type = view.type();
  if (!tile::isAtomic(getElementTypeOrSelf(added.getType()))) {
    verb.expected() << "a view of " << tile::atomicElements << ", but got " << nameOf(type);
    return verb.poison();
  }
  Shape shape = shapeOf(added);
  auto full = fullShape(verb, shape, view.rank());
  if (!full)
    return verb.poison();
  mlir::Value before = verb.emit<tile::AtomicAddOp>(static_cast<tile::MemoryOrder>(order), verb.reshape(added, *full),
                                                    verb.tracer.valueOf(view), *at);
  verb.effects.changed.push_back(view.index());
  return verb.result(verb.reshape(before, shape));
}

// --- Random numbers --------------------------------------------------------------------------------------------------

/// The first `words` words of a number, as values; none when an operand is poison or an error was reported.
static std::vector<mlir::Value> wordsOf(Verb &verb, const At &seed, const At &index, int64_t words) {
  mlir::Value key = verb.index(seed, "seed"), counter = verb.valueAs(index, i64);
  if (!key || !counter)
    return {};
  if (isFloat(elementOf(counter)) || elementOf(counter) == boolean) {
    verb.expected() << "integer indices, but got " << describe(counter);
    return {};
  }
  counter = verb.cast(counter, i64);
  std::vector<mlir::Value> values;
  for (int64_t word = 0; word < words; ++word)
    values.push_back(
        verb.emit<tile::RandomOp>(typeOf(counter.getContext(), i32, shapeOf(counter)), key, counter, word));
  return values;
}

Tile random_bits(At seed, At index) {
  Verb verb("random_bits", seed.loc);
  const std::vector<mlir::Value> words = wordsOf(verb, seed, index, 1);
  return words.empty() ? verb.poison() : verb.result(words[0]);
}

std::array<Tile, 4> random_words(At seed, At index) {
  Verb verb("random_words", seed.loc);
  const std::vector<mlir::Value> words = wordsOf(verb, seed, index, 4);
  if (words.empty())
    return {verb.poison(), verb.poison(), verb.poison(), verb.poison()};
  return {verb.result(words[0]), verb.result(words[1]), verb.result(words[2]), verb.result(words[3])};
}

Tile random(At seed, At index) {
  Verb verb("random", seed.loc);
  const std::vector<mlir::Value> words = wordsOf(verb, seed, index, 1);
  if (words.empty())
    return verb.poison();
  mlir::Value bits = words[0];
  Shape shape = shapeOf(bits);
  Literal eight, unit;
  eight.integer = 8;
  unit.isReal = true;
  unit.real = 0x1p-24;
  // The upper 24 bits, unsigned: each of the 2^24 results is exact in f32.
  mlir::Value high = verb.emit<arith::ShRUIOp>(bits, verb.constant(eight, i32, shape));
  return verb.result(verb.emit<arith::MulFOp>(verb.cast(high, f32), verb.constant(unit, f32, shape)));
}

// --- Debugging -------------------------------------------------------------------------------------------------------

void print(const std::string &label, At value) {
  Verb verb("print", value.loc);
  if (mlir::Value printed = verb.value(value))
    verb.emit<tile::PrintOp>(label, printed);
}

void check(At condition, const std::string &message) {
  Verb verb("check", condition.loc);
  mlir::Value value = verb.value(condition);
  if (!value)
    return;
  if (elementOf(value) != boolean) {
    verb.expected() << "a boolean condition, but got " << describe(value);
    return;
  }
  verb.emit<tile::CheckOp>(value, message);
}

} // namespace kiln

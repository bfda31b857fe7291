// Views and the verbs that touch memory, random numbers, print and check.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln {

// --- View ------------------------------------------------------------------------------------------------------------

Type View::type() const { return Tracer::current().factsOf(*this).type; }
int View::rank() const { return static_cast<int>(Tracer::current().dimensionsOf(*this).size()); }

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
  return verb.result(verb.emit<tile::DimOp>(verb.tracer.valueOf(*this), verb.tracer.dimensionsOf(*this)[axis]));
}

int64_t View::extent(int axis, Loc loc) const {
  Verb verb("extent", loc);
  if (!checkAxis(verb, *this, axis))
    throw Abandoned();
  verb.tracer.ask(*this, axis);
  return verb.tracer.factsOf(*this).extents[verb.tracer.dimensionsOf(*this)[axis]];
}

View View::select(int axis, At index, Loc loc) const {
  Verb verb("select", loc);
  if (!checkAxis(verb, *this, axis))
    throw Abandoned(); // without a view there is nothing to go on with
  Selection selection = this->selection ? *this->selection : Selection();
  selection.at.resize(verb.tracer.factsOf(*this).extents.size());
  selection.at[verb.tracer.dimensionsOf(*this)[axis]] = verb.tracer.make(verb.index(index, "index"), loc);
  return Tracer::selected(*this, std::move(selection));
}

// --- Loads and stores ------------------------------------------------------------------------------------------------

/// What begins in each dimension of a view's argument, as i64 values: the offsets, and where select() has fixed it that
/// index. `rows` dimensions of the view, the first ones, are left out. Nothing, reported, when they do not fit.
static std::optional<SmallVector<mlir::Value>> offsetsOf(Verb &verb, const View &view, const Offsets &offsets,
                                                         int rows = 0) {
  const int count = view.rank() - rows;
  if (static_cast<int>(offsets.size()) != count) {
    verb.expected() << count << (count == 1 ? " offset" : " offsets") << " for a view of rank " << view.rank()
                    << ", but got " << offsets.size();
    return {};
  }
  SmallVector<mlir::Value> values;
  verb.follow(offsets); // C++ computes what stands in braces from left to right
  for (const At &offset : offsets)
    values.push_back(verb.index(Tracer::lasting(offset), "offset"));
  const int dimensions = static_cast<int>(verb.tracer.factsOf(view).extents.size());
  for (int dimension = rows; dimension < dimensions; ++dimension)
    if (const Tile *fixed = Tracer::fixedAt(view, dimension))
      values.insert(values.begin() + (dimension - rows), verb.tracer.read(*fixed, verb.loc));
  if (llvm::is_contained(values, mlir::Value()))
    return {};
  return values;
}

/// Shape with leading extents of 1 up to the view's rank, less `rows`, and 1 where select() has fixed a dimension of
/// its argument; nothing, reported, when it has more dimensions.
static std::optional<Shape> fullShape(Verb &verb, const View &view, Shape shape, int rows = 0) {
  const size_t rank = view.rank() - rows;
  if (shape.size() > rank) {
    verb.expected() << "a tile of at most the view's rank " << rank << ", but got shape " << textOf(shape);
    return {};
  }
  shape.insert(shape.begin(), rank - shape.size(), 1);
  const int dimensions = static_cast<int>(verb.tracer.factsOf(view).extents.size());
  for (int dimension = rows; dimension < dimensions; ++dimension)
    if (Tracer::fixedAt(view, dimension))
      shape.insert(shape.begin() + (dimension - rows), 1);
  return shape;
}

/// Reports unless a view's rows are those of its memory, as gather and scatter want them.
static bool checkRows(Verb &verb, const View &view) {
  if (view.rank() > 0 && !Tracer::fixedAt(view, 0))
    return true;
  verb.expected() << "a view with the first dimension of its argument, whose rows it names, but select() has fixed it";
  return false;
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
  auto at = offsetsOf(verb, view, offsets);
  auto full = fullShape(verb, view, shape);
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
  auto at = offsetsOf(verb, view, offsets);
  mlir::Value stored = storedValue(verb, view, value);
  if (!at || !stored || !checkWritten(verb, view))
    return;
  if (auto full = fullShape(verb, view, shapeOf(stored)))
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
  if (!checkRows(verb, view))
    return verb.poison();
  mlir::Value indices = rowsOf(verb, rows);
  auto at = offsetsOf(verb, view, offsets, 1);
  auto full = fullShape(verb, view, shape, 1);
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
  if (!checkRows(verb, view))
    return;
  mlir::Value indices = rowsOf(verb, rows), stored = storedValue(verb, view, value);
  auto at = offsetsOf(verb, view, offsets, 1);
  if (!indices || !stored || !at || !checkWritten(verb, view))
    return;
  Shape shape = shapeOf(stored);
  int64_t count = shapeOf(indices)[0];
  if (shape.empty() || shape[0] != count) {
    verb.expected() << "one row for each of the " << count << " indices, but got " << describe(stored);
    return;
  }
  auto full = fullShape(verb, view, Shape(shape.begin() + 1, shape.end()), 1);
  if (!full)
    return;
  full->insert(full->begin(), count);
  verb.emit<tile::ScatterOp>(verb.reshape(stored, *full), verb.tracer.valueOf(view), indices, *at);
}

Tile atomic_add(View view, Offsets offsets, At value, Order order, Loc loc) {
  Verb verb("atomic_add", loc);
  auto at = offsetsOf(verb, view, offsets);
  mlir::Value added = storedValue(verb, view, value);
  if (!at || !added)
    return verb.poison();
  Type type = view.type();
  if (!tile::isAtomic(getElementTypeOrSelf(added.getType()))) {
    verb.expected() << "a view of " << tile::atomicElements << ", but got " << nameOf(type);
    return verb.poison();
  }
  Shape shape = shapeOf(added);
  auto full = fullShape(verb, view, shape);
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

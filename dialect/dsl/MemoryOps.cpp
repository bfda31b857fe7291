// Views, random numbers, print and check.

#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Tracer.h"
#include "dialect/tile/TypeRules.h"

#include <numbers>

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

// --- Random numbers --------------------------------------------------------------------------------------------------

/// The first `words` words of a number, as values; none when an operand is poison or an error was reported.
static std::vector<mlir::Value> wordsOf(Verb &verb, const At &seed, const At &index, int64_t words) {
  mlir::Value key = verb.integer(seed, "seed"), counter = verb.valueAs(index, i64);
  if (!key || !counter)
    return {};
  key = verb.cast(key, i64);
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

/// The first two words of a number, as tiles.
static std::array<Tile, 2> twoWords(const char *name, const At &seed, const At &index) {
  Verb verb(name, seed.loc);
  const std::vector<mlir::Value> words = wordsOf(verb, seed, index, 2);
  if (words.empty())
    return {verb.poison(), verb.poison()};
  return {verb.result(words[0]), verb.result(words[1])};
}

Tile random_normal(At seed, At index) {
  const auto at = [&](auto operand) { return At(operand, seed.loc); };
  const std::array<Tile, 2> words = twoWords("random_normal", seed, index);
  const Tile u = at(at(cast(at(bitcast(at(words[0]), u32)), f32)) + at(0.5)) * at(0x1p-32);
  const Tile angle = at(cast(at(words[1]), f32)) * at(2 * std::numbers::pi * 0x1p-32);
  return at(sqrt(at(at(log(at(u))) * at(-2)))) * at(cos(at(angle)));
}

// --- Debugging -------------------------------------------------------------------------------------------------------

void print(const std::string &label, At value) {
  Verb verb("print", value.loc);
  if (mlir::Value printed = verb.value(value))
    tile::setUnsigned(verb.emit<tile::PrintOp>(label, printed), isUnsigned(elementOf(printed)));
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

// Views, random numbers, print and check.

#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Tracer.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;

namespace kiln {

// --- View ------------------------------------------------------------------------------------------------------------

Type View::type() const { return Tracer::current().factsOf(*this).type; }
int View::rank() const { return static_cast<int>(Tracer::current().dimensionsOf(*this).size()); }

/// A view in messages: `'x' (M, K)` with the shape in the registration, or `'x' (a view of rank 2)` without one. A
/// selected view has fewer dimensions than its argument.
static std::string describe(const Tracer &tracer, const View &view) {
  const auto index = static_cast<size_t>(view.index());
  const std::string name = tracer.kernel.called(index);
  const bool isWhole = view.rank() == static_cast<int>(tracer.factsOf(view).extents.size());
  const std::string about = index < tracer.kernel.parameters.size() ? tracer.kernel.parameters[index].about : "";
  if (const size_t end = about.find(')'); isWhole && about.starts_with("(") && end != std::string::npos)
    return name + " " + about.substr(0, end + 1);
  return name + " (a view of rank " + std::to_string(view.rank()) + ")";
}

static bool checkAxis(Call &call, const View &view, int axis) {
  if (axis >= 0 && axis < view.rank())
    return true;
  return call.expected() << "a dimension from 0 to " << view.rank() - 1 << " of " << describe(call.tracer, view)
                         << ", but got " << axis;
}

Tile View::dim(int axis, Loc loc) const {
  Call call("dim", loc);
  if (!checkAxis(call, *this, axis))
    return call.poison();
  const int dimension = call.tracer.dimensionsOf(*this)[axis];
  if (const Selection::Slice *slice = Tracer::sliceOf(*this, dimension))
    return call.result(call.read(At(slice->extent, loc)));
  return call.result(call.emit<tile::DimOp>(call.tracer.valueOf(*this), dimension));
}

int64_t View::extent(int axis, Loc loc) const {
  Call call("extent", loc);
  if (!checkAxis(call, *this, axis))
    throw Abandoned();
  const int dimension = call.tracer.dimensionsOf(*this)[axis];
  if (Tracer::sliceOf(*this, dimension)) {
    call.expected() << "a dimension of " << describe(call.tracer, *this) << " that is not sliced, but got " << axis
                    << "; use dim()";
    throw Abandoned();
  }
  call.tracer.makeStatic(*this, axis);
  return call.tracer.factsOf(*this).extents[dimension];
}

/// The position in the argument for `index` in a slice; −1, which is out of bounds, if `index` is outside the slice.
static mlir::Value positionIn(Call &call, const Selection::Slice &slice, mlir::Value index) {
  const mlir::Value begin = call.read(At(slice.begin, call.loc)), extent = call.read(At(slice.extent, call.loc));
  if (!index || !begin || !extent)
    return {};
  Literal outside;
  outside.integer = -1;
  return call.emit<arith::SelectOp>(call.emit<arith::CmpIOp>(arith::CmpIPredicate::ult, index, extent),
                                    call.emit<arith::AddIOp>(begin, index), call.constant(outside, i64, {}));
}

View View::select(int axis, At index, Loc loc) const {
  Call call("select", loc);
  if (!checkAxis(call, *this, axis))
    throw Abandoned(); // tracing cannot continue without a view
  Selection selection = call.tracer.selectionOf(*this);
  const int dimension = call.tracer.dimensionsOf(*this)[axis];
  mlir::Value position = call.index(index, "index");
  if (const Selection::Slice *slice = Tracer::sliceOf(*this, dimension))
    position = positionIn(call, *slice, position);
  selection.at[dimension] = call.tracer.make(position, loc);
  selection.slices[dimension].reset();
  return Tracer::selected(*this, std::move(selection));
}

/// `value` clamped to `low` … `high`, where `low` ≤ `high`.
static mlir::Value clamped(Call &call, mlir::Value value, mlir::Value low, mlir::Value high) {
  return call.emit<arith::MinSIOp>(call.emit<arith::MaxSIOp>(value, low), high);
}

View View::slice(int axis, At begin, At end, Loc loc) const {
  Call call("slice", loc);
  if (!checkAxis(call, *this, axis))
    throw Abandoned();
  Selection selection = call.tracer.selectionOf(*this);
  const int dimension = call.tracer.dimensionsOf(*this)[axis];
  std::optional<Selection::Slice> &slice = selection.slices[dimension];
  const mlir::Value extent =
      slice ? call.read(At(slice->extent, loc)) : call.emit<tile::DimOp>(call.tracer.valueOf(*this), dimension);
  mlir::Value first = call.index(begin, "begin"), last = call.index(end, "end");
  if (!first || !last || !extent)
    throw Abandoned();
  if (!matchPattern(first, m_Zero()))
    first = clamped(call, first, call.constant({}, i64, {}), extent);
  last = clamped(call, last, first, extent);
  const mlir::Value length = call.emit<arith::SubIOp>(last, first);
  if (slice)
    first = call.emit<arith::AddIOp>(call.read(At(slice->begin, loc)), first);
  slice = Selection::Slice{call.tracer.make(first, loc), call.tracer.make(length, loc)};
  return Tracer::selected(*this, std::move(selection));
}

// --- Random numbers --------------------------------------------------------------------------------------------------

/// The first `words` words of a random number, as values; none if an operand is poison or an error was reported.
static std::vector<mlir::Value> wordsOf(Call &call, const At &seed, const At &index, int64_t words) {
  mlir::Value key = call.integer(seed, "seed"), counter = call.valueAs(index, i64);
  if (!key || !counter)
    return {};
  key = call.cast(key, i64);
  if (!isInteger(elementOf(counter))) {
    call.expected() << "integer indices, but got " << describe(counter);
    return {};
  }
  counter = call.cast(counter, i64);
  std::vector<mlir::Value> values;
  for (int64_t word = 0; word < words; ++word)
    values.push_back(
        call.emit<tile::RandomOp>(typeOf(counter.getContext(), i32, shapeOf(counter)), key, counter, word));
  return values;
}

Tile random_bits(At seed, At index) {
  Call call("random_bits", seed.loc);
  const std::vector<mlir::Value> words = wordsOf(call, seed, index, 1);
  return words.empty() ? call.poison() : call.result(words[0]);
}

std::array<Tile, 4> random_words(At seed, At index) {
  Call call("random_words", seed.loc);
  const std::vector<mlir::Value> words = wordsOf(call, seed, index, 4);
  if (words.empty())
    return {call.poison(), call.poison(), call.poison(), call.poison()};
  return {call.result(words[0]), call.result(words[1]), call.result(words[2]), call.result(words[3])};
}

Tile random(At seed, At index) {
  Call call("random", seed.loc);
  const std::vector<mlir::Value> words = wordsOf(call, seed, index, 1);
  if (words.empty())
    return call.poison();
  mlir::Value bits = words[0];
  Shape shape = shapeOf(bits);
  Literal eight, unit;
  eight.integer = 8;
  unit.isFloating = true;
  unit.real = 0x1p-24;
  // The upper 24 bits, unsigned: each of the 2^24 results is exact in f32.
  mlir::Value high = call.emit<arith::ShRUIOp>(bits, call.constant(eight, i32, shape));
  return call.result(call.emit<arith::MulFOp>(call.cast(high, f32), call.constant(unit, f32, shape)));
}

/// The first two words of a random number, as tiles.
static std::array<Tile, 2> twoWords(const char *name, const At &seed, const At &index) {
  Call call(name, seed.loc);
  const std::vector<mlir::Value> words = wordsOf(call, seed, index, 2);
  if (words.empty())
    return {call.poison(), call.poison()};
  return {call.result(words[0]), call.result(words[1])};
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
  Call call("print", value.loc);
  mlir::Value printed = call.value(value);
  if (!printed)
    return;
  auto op = call.emit<tile::PrintOp>(label, printed);
  tile::setUnsigned(op, isUnsigned(elementOf(printed)));
  if (isPair(elementOf(printed)))
    op->setAttr("tile.element", call.tracer.builder.getI32IntegerAttr(static_cast<int32_t>(elementOf(printed))));
}

void device_assert(At condition, const std::string &message) {
  Call call("device_assert", condition.loc);
  mlir::Value value = call.value(condition);
  if (!value)
    return;
  if (elementOf(value) != boolean) {
    call.expected() << "a boolean condition, but got " << describe(value);
    return;
  }
  call.emit<tile::CheckOp>(value, message);
}

/// Records the parts of a conjunction that the compiler reads: comparisons of integers. A device that checks
/// assumptions also runs the code after a false one. A wrong range could make a loop in that code endless, so only
/// remainders are recorded there; other checks find a wrong remainder.
static void promise(Call &call, mlir::Value holds, bool isChecked) {
  if (auto both = holds.getDefiningOp<mlir::arith::AndIOp>()) {
    promise(call, both.getLhs(), isChecked);
    promise(call, both.getRhs(), isChecked);
  }
  auto compare = holds.getDefiningOp<mlir::arith::CmpIOp>();
  if (compare && compare.getLhs().getType().isInteger() &&
      (!isChecked || compare.getLhs().getDefiningOp<tile::RemOp>()))
    call.emit<tile::AssumeOp>(holds);
}

void assume(At condition) {
  Call call("assume", condition.loc);
  const mlir::Value holds = call.condition(condition, "condition");
  if (!holds)
    return;
  const bool isChecked = call.tracer.checksAssumptions();
  if (isChecked)
    call.emit<tile::CheckOp>(holds, "an assumption is false");
  promise(call, holds, isChecked);
}

} // namespace kiln

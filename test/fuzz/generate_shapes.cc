// Values of another shape, type or order: reshapes, reductions, scans, sorts, casts.

#include "test/fuzz/generator.h"
#include "test/fuzz/verbs.h"

#include <algorithm>

namespace kiln::fuzz {

bool Generator::reshapeStatement() {
  const auto found = find([](const Known &k) { return !k.shape.empty(); }, true);
  if (!found)
    return false;
  const int rank = static_cast<int>(found->shape.size());
  Op op{.type = found->type, .shape = found->shape, .operands = {found->operand()}};
  const int64_t draw = below(11);
  if (draw == 10) {
    op.verb = Verb::roll;
    op.axes = {static_cast<int>(below(rank))};
    op.which = static_cast<int>(chance(70) ? between(-3, 3) : between(-200, 200));
  } else if (draw < 4 && rank >= 2) {
    op.verb = Verb::transpose;
    for (int axis = 0; axis < rank; ++axis)
      op.axes.push_back(axis);
    if (chance(50))
      std::swap(op.axes[rank - 1], op.axes[rank - 2]);
    else
      std::shuffle(op.axes.begin(), op.axes.end(), random);
    for (int axis = 0; axis < rank; ++axis)
      op.shape[axis] = found->shape[op.axes[axis]];
  } else if (draw < 7) {
    op.verb = Verb::reshape;
    op.shape.clear();
    int64_t left = countOf(found->shape);
    for (const int64_t part : {pick(palette), pick(palette), int64_t(2)})
      if (left % part == 0 && op.shape.size() < 3)
        op.shape.push_back(part), left /= part;
    op.shape.insert(op.shape.begin() + below(op.shape.size() + 1), left);
  } else if (rank <= 3) {
    op.verb = Verb::unsqueeze;
    const int axis = static_cast<int>(below(rank + 1));
    op.axes = {axis};
    op.shape.insert(op.shape.begin() + axis, 1);
    const Known expanded = emit(op, found->facts);
    op = {.verb = Verb::broadcast, .type = found->type, .shape = op.shape, .operands = {expanded.operand()}};
    const int64_t extent = pick(palette);
    op.shape[axis] = countOf(found->shape) * extent <= 2048 ? extent : 1; // twice as long each way, one warp holds it
  } else {
    return false;
  }
  emit(op, found->facts);
  return true;
}

bool Generator::reduceStatement() {
  const int row = chance(25) ? 0 : static_cast<int>(below(reductions().size()));
  const Reduction &verb = reductions()[row];
  auto found = find([&](const Known &k) { return !k.shape.empty() && verb.takes(k.type); });
  if (!found)
    return false;
  const int rank = static_cast<int>(found->shape.size());
  const int several = !verb.isUsers && chance(25) ? static_cast<int>(below(rank)) : 0;
  std::vector<int> axes;
  for (int axis = 0; axis < rank; ++axis)
    axes.push_back(axis);
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(1 + several);
  const bool keeps = !verb.isUsers && chance(25);
  Shape shape;
  int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const bool isReduced = std::ranges::find(axes, axis) != axes.end();
    if (isReduced)
      count *= found->shape[axis];
    if (!isReduced || keeps)
      shape.push_back(isReduced ? 1 : found->shape[axis]);
  }
  auto facts = verb.facts(found->type, found->facts, count);
  if (!facts && verb.wants && found->facts.exact()) {
    Facts wanted = *verb.wants(found->type, count);
    wanted.whole &= row != 0 || chance(70); // sums of any small numbers have a bound
    found = fit(*found, wanted);
    facts = verb.facts(found->type, found->facts, count);
  }
  if (!facts)
    return false;
  emit({.verb = Verb::reduce,
        .type = verb.gives(found->type),
        .shape = shape,
        .operands = {found->operand()},
        .which = row,
        .keeps = keeps,
        .axes = axes},
       *facts);
  return true;
}

bool Generator::scanStatement() {
  const int row = chance(25) ? 0 : static_cast<int>(below(static_cast<int64_t>(scans().size())));
  const Reduction &verb = scans()[row];
  auto found = find([&](const Known &k) { return !k.shape.empty() && verb.takes(k.type); });
  if (!found)
    return false;
  const int axis = static_cast<int>(below(static_cast<int64_t>(found->shape.size())));
  const int64_t count = found->shape[axis];
  auto facts = verb.facts(found->type, found->facts, count);
  if (!facts && verb.wants && found->facts.exact()) {
    found = fit(*found, *verb.wants(found->type, count));
    facts = verb.facts(found->type, found->facts, count);
  }
  if (!facts)
    return false;
  emit({.verb = Verb::scan,
        .type = verb.gives(found->type),
        .shape = found->shape,
        .operands = {found->operand()},
        .which = row,
        .keeps = chance(40),
        .axes = {axis}},
       *facts);
  return true;
}

/// Elements by their positions, or counts of them by their values.
bool Generator::lookUpStatement() {
  const bool counts = chance(40);
  const auto found = find(
      [&](const Known &k) {
        return !k.shape.empty() &&
               (!counts || (!isFloat(k.type) && !isPair(k.type) && k.facts.exact() && k.shape.size() <= 4));
      },
      true);
  if (!found)
    return false;
  const auto rank = static_cast<int64_t>(found->shape.size());
  if (counts) {
    Op op{.verb = Verb::histogram, .type = i32, .shape = {between(1, 40)}, .operands = {found->operand()}};
    op.mask = maskFor(found->shape, 40);
    emit(op, wholeNumbers(static_cast<double>(countOf(found->shape))));
    return true;
  }
  const int axis = static_cast<int>(below(rank));
  Shape shape = found->shape;
  shape[axis] = 1;
  const int64_t extent = pick(palette);
  shape[axis] = countOf(shape) * extent <= 2048 ? extent : 1;
  if (rank > 4)
    return false;
  const Known places = numbers(shape, found->shape[axis], false);
  emit({.verb = Verb::gather,
        .type = found->type,
        .shape = shape,
        .operands = {found->operand(), places.operand()},
        .axes = {axis}},
       either(found->facts, wholeNumbers(0)));
  return true;
}

/// A bitcast to another type of the same width. The bits of a NaN, and of some zeros, are unspecified.
bool Generator::viewBits(const Known &value) {
  const auto partner = [](Type type) {
    switch (type) {
    case Type::i8:
      return f8e5m2;
    case Type::u8:
      return f8e4m3;
    case Type::f4e2m1x2:
    case Type::f8e8m0:
      return u8;
    case Type::f8e4m3:
      return i8;
    case Type::f8e5m2:
      return u8;
    case Type::i16:
      return bf16;
    case Type::u16:
      return f16;
    case Type::u32:
      return f32;
    case Type::u64:
      return f64;
    case Type::bf16:
      return f16;
    case Type::f16:
      return bf16;
    case Type::i32:
      return f32;
    case Type::f32:
      return i32;
    case Type::i64:
      return f64;
    case Type::f64:
      return i64;
    default:
      return type;
    }
  };
  const Type type = value.type == u8 && chance(40) ? (chance(50) ? f8e8m0 : f4e2m1x2)
                    : chance(80)                   ? partner(value.type)
                                                   : value.type;
  Facts facts = type == value.type ? value.facts : anything(type);
  facts.openZero = false;
  emit({.verb = Verb::bitcast, .type = type, .shape = value.shape, .operands = {value.operand()}}, facts);
  return true;
}

/// A cast in a direction, or stochastic, of numbers that all machines agree on.
bool Generator::roundStatement(const Known &value, Type type) {
  Facts beyond = value.facts; // the next number is not further away than a quarter, or the least number above 0
  beyond.bound = beyond.bound * 1.25 + 1;
  const auto facts = castOf(value.type, type, beyond);
  if (!facts || !beyond.exact())
    return false;
  Op op{.verb = Verb::cast, .type = type, .shape = value.shape, .operands = {value.operand()}};
  op.which = static_cast<int>(between(1, 4));
  if (isFloat(value.type) && isFloat(type) && chance(40)) {
    op.which = 5;
    op.operands.push_back(valueOf(i32, value.shape).operand());
  }
  emit(op, *facts);
  return true;
}

/// Numbers as pairs of 4-bit floats, pairs as numbers, or one after the other. Machines agree on the sign of a packed
/// zero.
bool Generator::packStatement() {
  const auto hasAxes = [](const Known &k) { return !k.shape.empty() && k.shape.size() <= 4; };
  auto found = find([&](const Known &k) { return hasAxes(k) && isPair(k.type); }, /*moves=*/true);
  if (!found || chance(30))
    found = find([&](const Known &k) { return hasAxes(k) && isFloat(k.type) && k.facts.exact() && !k.facts.openZero; });
  if (!found)
    return false;
  const auto axis = static_cast<int>(below(static_cast<int64_t>(found->shape.size())));
  Known pairs = *found;
  if (!isPair(pairs.type)) {
    Op op{.verb = Verb::pack, .type = f4e2m1x2, .shape = pairs.shape, .operands = {pairs.operand()}, .axes = {axis}};
    if (op.shape[axis] % 2 != 0)
      return false;
    op.shape[axis] /= 2;
    pairs = emit(op, anything(f4e2m1x2));
    if (chance(50))
      return true;
  }
  if (countOf(pairs.shape) > 1024)
    return false;
  static const std::vector<Type> numbers = {bf16, f16, f32, f64, f8e4m3, f8e5m2};
  Op op{
      .verb = Verb::unpack, .type = pick(numbers), .shape = pairs.shape, .operands = {pairs.operand()}, .axes = {axis}};
  op.shape[axis] *= 2;
  emit(op, Facts{.bound = 6, .whole = false, .openZero = false});
  return true;
}

bool Generator::castStatement() {
  if (chance(12))
    return packStatement();
  static const std::vector<Type> all(std::begin(everyType), std::end(everyType));
  const Type type = chance(60) ? pick(types) : pick(all);
  if (const auto bits = find(
          [](const Known &k) {
            return k.type != boolean && k.facts.exact() &&
                   (!isFloat(k.type) || (k.facts.bounded() && !k.facts.openZero));
          },
          true);
      bits && chance(20))
    return viewBits(*bits);
  const auto found = find([&](const Known &k) { return k.type != type && castOf(k.type, type, k.facts); }, true);
  if (!found)
    return false;
  if (!chance(30) || !roundStatement(*found, type))
    cast(*found, type);
  return true;
}

} // namespace kiln::fuzz

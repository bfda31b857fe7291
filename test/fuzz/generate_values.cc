// Values: elementwise operations, masks and numbers.

#include "test/fuzz/generator.h"
#include "test/fuzz/verbs.h"

#include <algorithm>
#include <cmath>

namespace kiln::fuzz {

std::optional<Known> Generator::find(const std::function<bool(const Known &)> &wanted, bool moves) {
  std::vector<Known> fitting;
  for (const Known &candidate : known)
    if ((moves || hasArithmetic(candidate.type)) && wanted(candidate))
      fitting.push_back(candidate);
  if (fitting.empty())
    return {};
  // Preferably a recent value, so that programs become deep, not only wide.
  return chance(50) ? fitting[fitting.size() - 1 - below(std::min<int64_t>(3, fitting.size()))] : pick(fitting);
}

Known Generator::scalar() {
  const auto found = find([](const Known &k) { return k.type == i64 && k.shape.empty() && k.facts.bound < 1e6; });
  if (found && chance(85))
    return *found;
  if (!program.windows.empty() && chance(60)) {
    const int index = static_cast<int>(below(program.windows.size()));
    const Shape &extents = program.windows[index].extents;
    const int axis = static_cast<int>(below(extents.size()));
    Op op{.verb = Verb::dim, .type = i64, .window = index, .axes = {axis}};
    return emit(op, wholeNumbers(static_cast<double>(extents[axis])));
  }
  return cast(fit(load(chance(50) ? i32 : i64, {}), wholeNumbers(20)), i64);
}

Operand Generator::literal(Type type) {
  if (type == boolean)
    return Operand::number(below(2));
  if (isPair(type))
    return Operand::number(int64_t(0));
  if (!isFloat(type))
    return Operand::number(isUnsigned(type) ? between(0, chance(80) ? 8 : 255)
                           : chance(80)     ? between(-4, 8)
                                            : between(-128, 127));
  return chance(70) ? Operand::number(static_cast<double>(between(-3, 4)))
                    : Operand::number(static_cast<double>(between(-40, 40)) * 0.125);
}

Facts Generator::literalFacts(Type type, const Operand &literal) const {
  const double value = literal.isReal ? literal.real : static_cast<double>(literal.integer);
  return within(type, {.bound = std::abs(value), .whole = value == static_cast<int64_t>(value), .openZero = false});
}

Known Generator::apply(const char *text, const std::vector<Operand> &operands, Type type, const Shape &shape,
                       const Facts &facts) {
  Op op{.verb = Verb::elementwise, .type = type, .shape = shape, .operands = operands, .which = elementwiseRow(text)};
  return emit(op, within(type, facts));
}

Known Generator::fit(const Known &value, const Facts &facts) {
  Known result = value;
  const auto limit = [&](double number) {
    return isFloat(value.type) ? Operand::number(number) : Operand::number(static_cast<int64_t>(number));
  };
  if (result.facts.bound > facts.bound) {
    Facts clamped = result.facts;
    clamped.bound = facts.bound;
    clamped.openZero = true;
    result = apply("clamp($0, $1, $2)",
                   {result.operand(), limit(isUnsigned(value.type) ? 0 : -facts.bound), limit(facts.bound)}, value.type,
                   value.shape, clamped);
  }
  if (facts.whole && !result.facts.whole) {
    Facts rounded = result.facts;
    rounded.whole = true;
    result = apply("floor($0)", {result.operand()}, value.type, value.shape, rounded);
  }
  return result;
}

Known Generator::cast(const Known &value, Type type) {
  if (value.type == type)
    return value;
  Op op{.verb = Verb::cast, .type = type, .shape = value.shape, .operands = {value.operand()}};
  return emit(op, *castOf(value.type, type, value.facts));
}

/// A tile of numbers that nothing was read for.
Known Generator::number(Type type, const Shape &shape) {
  if (shape.size() == 1 && !isPair(type) && chance(60)) {
    Op op{.verb = Verb::iota, .type = chance(50) ? i32 : i64, .shape = shape};
    return cast(emit(op, wholeNumbers(static_cast<double>(shape[0]))), type);
  }
  if (const int64_t count = countOf(shape); count > 1 && count <= 96 && chance(30)) {
    Op op{.verb = Verb::constant, .type = type, .shape = shape};
    Facts facts;
    for (int64_t i = 0; i < count; ++i) {
      op.operands.push_back(literal(type));
      const Facts one = literalFacts(type, op.operands.back());
      facts = i == 0 ? one : either(facts, one);
    }
    return emit(op, facts);
  }
  const Operand value = literal(type);
  Op op{.verb = Verb::full, .type = type, .shape = shape, .operands = {value}};
  return emit(op, literalFacts(type, value));
}

Known Generator::valueOf(Type type, const Shape &shape, bool exact) {
  const auto found =
      find([&](const Known &k) { return k.type == type && k.shape == shape && (!exact || k.facts.exact()); }, true);
  if (found && chance(80))
    return *found;
  if (chance(75))
    return load(type, shape);
  const auto other = find([&](const Known &k) { return !isPair(type) && k.shape == shape && k.facts.exact(); });
  return other ? cast(*other, type) : number(type, shape);
}

/// A triangle, or a band's edge: rows compared with columns, shifted.
Known Generator::mask(const Shape &shape) {
  const size_t rank = shape.size();
  const Type type = chance(70) ? i32 : i64;
  Known sides[2];
  for (int side = 0; side < 2; ++side) {
    const int64_t count = shape[rank - 2 + side];
    Known line = emit({.verb = Verb::iota, .type = type, .shape = {count}}, wholeNumbers(static_cast<double>(count)));
    if (chance(40))
      line = apply("$0 + $1", {line.operand(), Operand::number(between(-9, 17))}, type, {count}, wholeNumbers(1e4));
    else if (chance(30))
      line = apply("$0 + $1", {line.operand(), cast(scalar(), type).operand()}, type, {count}, anything(type));
    Op op{.verb = Verb::unsqueeze, .type = type, .shape = {count, 1}, .operands = {line.operand()}, .axes = {1 - side}};
    if (side == 1)
      op.shape = {1, count};
    sides[side] = emit(op, line.facts);
  }
  if (chance(20)) { // so far from the diagonal, or further than any element is
    const Known distance = apply("$0 - $1", {sides[1].operand(), sides[0].operand()}, type,
                                 {shape[rank - 2], shape[rank - 1]}, anything(type));
    const int64_t least = type == i32 ? INT32_MIN : INT64_MIN, most = type == i32 ? INT32_MAX : INT64_MAX;
    const int64_t limit = chance(50) ? between(-20, 20) : pick(std::vector<int64_t>{least, least + 9, most - 9, most});
    return apply(pick(std::vector<const char *>{"$0 <= $1", "$0 > $1"}), {distance.operand(), Operand::number(limit)},
                 boolean, distance.shape, anything(boolean));
  }
  static const std::vector<const char *> orders = {"$0 < $1", "$0 <= $1", "$0 > $1", "$0 >= $1", "$0 == $1"};
  return apply(pick(orders), {sides[0].operand(), sides[1].operand()}, boolean, {shape[rank - 2], shape[rank - 1]},
               anything(boolean));
}

/// A bool tile that broadcasts to `shape`.
Known Generator::condition(const Shape &shape) {
  if (shape.size() >= 2 && chance(40))
    return mask(shape);
  if (const auto found = find([&](const Known &k) { return k.type == boolean && k.shape == shape; });
      found && chance(60)) {
    if (shape.empty() || chance(60))
      return *found;
    const Known moved = permuted(*found); // one mask at several positions
    return chance(50) ? moved
                      : apply(chance(50) ? "$0 & $1" : "$0 | $1", {found->operand(), moved.operand()}, boolean, shape,
                              anything(boolean));
  }
  const Known left = valueOf(pick(types), shape);
  const Operand right = chance(50) ? literal(left.type) : valueOf(left.type, shape).operand();
  static const std::vector<const char *> orders = {"$0 < $1",  "$0 <= $1", "$0 > $1",
                                                   "$0 >= $1", "$0 == $1", "$0 != $1"};
  return apply(pick(orders), {left.operand(), right}, boolean, shape, anything(boolean));
}

bool Generator::elementwiseStatement() {
  const int row = static_cast<int>(below(elementwise().size()));
  const Elementwise &verb = elementwise()[row];
  const bool selects = std::string_view(verb.text).starts_with("where");
  auto first = find([&](const Known &k) { return verb.takes(k.type); });
  if (!first)
    return false;
  if (isFloat(first->type) && !first->shape.empty() && chance(3)) {
    const int axis = static_cast<int>(below(first->shape.size()));
    if (const auto facts = softmaxOf(first->type, first->facts, first->shape[axis])) {
      emit({.verb = Verb::softmax,
            .type = first->type,
            .shape = first->shape,
            .operands = {first->operand()},
            .axes = {axis}},
           *facts);
      return true;
    }
  }
  if (first->facts.exact() && std::string_view(verb.text).starts_with("exp"))
    first = fit(*first, {.bound = 8, .whole = false});
  Op op{
      .verb = Verb::elementwise, .type = verb.comparison ? boolean : first->type, .shape = first->shape, .which = row};
  std::vector<Facts> facts;
  if (selects) {
    op.operands.push_back(condition(first->shape).operand());
    facts.push_back(anything(boolean));
  }
  op.operands.push_back(first->operand());
  facts.push_back(first->facts);
  while (static_cast<int>(op.operands.size()) < verb.operands) {
    const Shape &shape = first->shape;
    Shape other = shape;
    if (!other.empty() && chance(15)) { // repeated along a dimension, or along leading ones
      if (chance(50))
        other[below(other.size())] = 1;
      else
        other.erase(other.begin());
    }
    if (first->type != boolean && chance(30)) {
      op.operands.push_back(literal(first->type));
      facts.push_back(literalFacts(first->type, op.operands.back()));
      continue;
    }
    const Known next = valueOf(first->type, other, first->facts.exact());
    op.operands.push_back(next.operand());
    facts.push_back(next.facts);
  }
  if (verb.operands == 2 && chance(25)) {
    std::swap(op.operands[0], op.operands[1]);
    std::swap(facts[0], facts[1]);
  }
  const auto result = verb.facts(first->type, facts);
  if (!result)
    return false;
  emit(op, *result);
  return true;
}

/// Checks a comparison that holds for most elements, or for all.
bool Generator::checkStatement() {
  if (checks || depth > 0 || program.grid > 1)
    return false;
  const auto value = find(
      [](const Known &k) { return k.type != boolean && !k.shape.empty() && k.facts.exact() && k.facts.bounded(); });
  if (!value)
    return false;
  const double limit = std::floor(chance(50) ? value->facts.bound : value->facts.bound / 2);
  const Operand most =
      isFloat(value->type) ? Operand::number(limit) : Operand::number(static_cast<int64_t>(std::min(limit, 127.0)));
  const Known holds = apply("$0 <= $1", {value->operand(), most}, boolean, value->shape, anything(boolean));
  emit({.verb = Verb::deviceAssert, .operands = {holds.operand()}}, {});
  checks = true;
  return true;
}

/// Tells the compiler a range of an i64 scalar, and powers of two that divide an argument.
bool Generator::assumeStatement() {
  const auto value = find([](const Known &k) {
    return k.type == i64 && k.shape.empty() && k.facts.exact() && k.facts.bounded() && k.facts.bound < 0x1p40;
  });
  if (!value)
    return false;
  const auto bound = static_cast<int64_t>(value->facts.bound);
  int64_t divisor = 1;
  if (value->value < static_cast<int>(program.scalars.size()))
    while (divisor < 16 && program.scalars[value->value] % (2 * divisor) == 0)
      divisor *= 2;
  Op op{.verb = Verb::assume, .operands = {value->operand()}, .begin = {-bound - below(2), bound + below(3)}};
  op.which = static_cast<int>(divisor);
  emit(op, {});
  return true;
}

bool Generator::creationStatement() {
  if (chance(50)) {
    number(pick(types), drawShape(static_cast<int>(between(0, 3))));
    return true;
  }
  const auto index = find([](const Known &k) { return k.type == i64 || k.type == i32; });
  const Known counter = index ? *index : load(i64, drawShape(1));
  const Operand seed = chance(50) ? Operand::number(below(1000)) : scalar().operand();
  Op op{.verb = Verb::randomBits, .type = i32, .shape = counter.shape, .operands = {seed, counter.operand()}};
  if (chance(50)) {
    op.which = static_cast<int>(below(4));
    emit(op, anything(i32));
    return true;
  }
  op.type = f32;
  op.verb = chance(60) ? Verb::random : Verb::randomNormal;
  emit(op, op.verb == Verb::random ? Facts{.bound = 1, .whole = false, .openZero = false} : normalFacts());
  return true;
}

} // namespace kiln::fuzz

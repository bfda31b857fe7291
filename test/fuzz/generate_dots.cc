// Matrix products: every type, alone or several at once, alone and in a loop over K. Operands are read from views of
// rank 2 to 5, transposed, masked, computed or existing values. Products with block scales, too.

#include "test/fuzz/generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::fuzz {

/// An operand of that shape. In a loop over K its offset along `kAxis` is `k`; `k` is null outside of such a loop.
Known Generator::factor(Type type, const Shape &shape, const Operand *k, int kAxis) {
  const bool turns = chance(35);
  Shape read = shape;
  std::vector<int> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (turns) {
    std::swap(read.back(), read[read.size() - 2]);
    std::swap(order.back(), order[order.size() - 2]);
  }
  Known result;
  if (!k && chance(20)) {
    result = valueOf(type, read);
  } else {
    const int index = window(Access::read, type, read);
    std::vector<Operand> at = offsets(index, read);
    if (k)
      at[at.size() - 2 + (turns ? 1 - kAxis : kAxis)] = *k;
    result = loadAt(index, read, at);
    result = fit(result, {.bound = 8, .whole = false});
  }
  if (!result.facts.bounded())
    result = fit(result, wholeNumbers(4));
  if (chance(15)) {
    const Operand zero = isFloat(type) ? Operand::number(0.0) : Operand::number(int64_t(0));
    Facts masked = result.facts;
    result = apply("where($0, $1, $2)", {mask(read).operand(), result.operand(), zero}, type, read, masked);
  }
  if (isFloat(type) && chance(15)) {
    Facts doubled = result.facts;
    doubled.bound *= 2;
    result = apply("$0 * $1", {result.operand(), Operand::number(2.0)}, type, read, doubled);
  }
  if (!turns)
    return result;
  return emit({.verb = Verb::transpose, .type = type, .shape = shape, .operands = {result.operand()}, .axes = order},
              result.facts);
}

static Type sumType(Type type) { return type == f64 ? f64 : isInteger(type) ? i32 : f32; }

static const std::vector<Type> factorTypes = {f32, f32, f32, f32, bf16, bf16, f16, f64, i8, u8, f8e4m3, f8e5m2};
static const std::vector<Type> narrowTypes = {bf16, bf16, f16, i8, u8, f8e4m3, f32};

/// The type of the other operand for an operand of `type`: equal, except that 8-bit types may be mixed.
Type Generator::drawPartner(Type type) {
  if (isInteger(type) && chance(50))
    return type == i8 ? u8 : i8;
  const bool isByte = type == f8e4m3 || type == f8e5m2;
  return !isByte || chance(50) ? type : type == f8e4m3 ? f8e5m2 : f8e4m3;
}

/// A precision for operands of `type`: any for f32; for 8-bit floats, one that permits coarse sums.
Precision Generator::precisionFor(Type type) {
  const bool permits = type == f32 ? chance(60) : (type == f8e4m3 || type == f8e5m2) && chance(30);
  return permits ? static_cast<Precision>(between(1, 3)) : Precision::ieee;
}

/// The extents before the last two of a product of several matrices, and of a tile of theirs.
static Shape joined(Shape leading, int64_t rows, int64_t columns) {
  leading.insert(leading.end(), {rows, columns});
  return leading;
}

/// M, K and N: two f64 operands and their product fit a GPU's shared memory.
std::array<int64_t, 3> Generator::productExtents() {
  std::array<int64_t, 3> extents;
  for (int64_t &extent : extents)
    extent = std::min<int64_t>(pick(palette), 64);
  return extents;
}

bool Generator::dotStatement() {
  if (chance(12))
    return dotScaled();
  const Type type = pick(factorTypes);
  auto [m, k, n] = productExtents();
  const Shape leading = chance(30) ? leadingExtents(3) : Shape();
  if (!leading.empty()) { // smaller matrices
    for (int64_t *extent : {&m, &k, &n})
      *extent = std::min<int64_t>(*extent, 24);
  }
  const Known left = factor(type, joined(leading, m, k), nullptr, 1),
              right = factor(drawPartner(type), joined(leading, k, n), nullptr, 0);
  Op op{.verb = Verb::dot,
        .type = sumType(type),
        .shape = joined(leading, m, n),
        .operands = {left.operand(), right.operand()},
        .precision = precisionFor(type)};
  Facts acc{.bound = 0};
  if (chance(40)) {
    const Known sum = fit(valueOf(op.type, op.shape), wholeNumbers(256));
    op.operands.push_back(sum.operand());
    acc = sum.facts;
  }
  const auto facts = productOf(type, left.facts, right.facts, acc, k, op.precision);
  if (!facts)
    return false;
  emit(op, *facts);
  return true;
}

/// Extents before the last two, up to `most` of them, of few matrices.
Shape Generator::leadingExtents(int most) {
  Shape leading(static_cast<size_t>(between(1, most)));
  for (int64_t &extent : leading)
    extent = between(1, leading.size() == 1 ? 6 : leading.size() == 2 ? 3 : 2);
  return leading;
}

/// An operand with so many elements, `length` of which along `kAxis` share a scale, and the scales, of u8, f8e8m0 or
/// f8e4m3. Scales are ¼ to 2, or 2 to 16 so that 4-bit floats become integers. Its facts are those of elements times
/// scales, which bf16 represents.
std::array<Known, 2> Generator::scaledFactor(const Shape &leading, int64_t rows, int64_t columns, int kAxis,
                                             int64_t length) {
  const Type type = pick(std::vector<Type>{f8e4m3, f8e5m2, u8});
  const auto along = [&](int64_t divisor) {
    return joined(leading, kAxis == 0 ? rows / divisor : rows, kAxis == 1 ? columns / divisor : columns);
  };
  Known elements = type == u8 ? valueOf(u8, along(2)) : factor(type, along(1), nullptr, kAxis);
  if (type == u8 && chance(50))
    elements =
        emit({.verb = Verb::bitcast, .type = f4e2m1x2, .shape = elements.shape, .operands = {elements.operand()}},
             anything(f4e2m1x2));
  const Shape blocks = along(length);
  const int64_t least = chance(50) ? 1 : -2, steps = 3; // powers of two, from 2^least on
  const Known drawn = apply("$0 & $1", {valueOf(u8, blocks).operand(), Operand::number(steps)}, u8, blocks, {});
  Known scales = apply("$0 + $1", {drawn.operand(), Operand::number(127 + least)}, u8, blocks, anything(u8));
  if (chance(40)) { // exponents of f8e4m3, whose bias is 7 and whose mantissa has 3 bits
    const Known exponent = apply("$0 + $1", {drawn.operand(), Operand::number(7 + least)}, u8, blocks, {});
    const Known bits = apply("$0 * $1", {exponent.operand(), Operand::number(int64_t(8))}, u8, blocks, anything(u8));
    scales = emit({.verb = Verb::bitcast, .type = f8e4m3, .shape = blocks, .operands = {bits.operand()}},
                  {.bound = std::exp2(least + steps), .whole = false});
  } else if (chance(40)) {
    scales = emit({.verb = Verb::bitcast, .type = f8e8m0, .shape = blocks, .operands = {scales.operand()}},
                  anything(f8e8m0));
  }
  const double most = std::exp2(least + steps);
  const bool isWhole = least > 0 && (type == u8 || elements.facts.whole);
  const double bound = type == u8 ? 6 : elements.facts.bound, error = type == u8 ? 0 : elements.facts.error();
  elements.facts = {.bound = bound * most, .whole = isWhole, .absolute = error * most};
  return {elements, scales};
}

bool Generator::dotScaled() {
  auto [m, k, n] = productExtents();
  const int64_t lengths[] = {chance(50) ? 16 : 32, chance(50) ? 16 : 32};
  k = std::max(lengths[0], lengths[1]) * between(1, 3);
  const Shape leading = chance(30) ? leadingExtents(2) : Shape();
  if (!leading.empty())
    m = std::min<int64_t>(m, 24), n = std::min<int64_t>(n, 24);
  Op op{.verb = Verb::dotScaled, .type = f32, .shape = joined(leading, m, n)};
  op.which = chance(30) ? static_cast<int>(between(1, 2)) : 0; // the factor without scales
  const auto side = [&](int which, int64_t rows, int64_t columns, int kAxis) {
    if (op.which == which) {
      const Known plain =
          factor(pick(std::vector<Type>{bf16, f8e4m3, f8e5m2}), joined(leading, rows, columns), nullptr, kAxis);
      op.operands.push_back(plain.operand());
      return plain;
    }
    const auto [elements, scales] = scaledFactor(leading, rows, columns, kAxis, lengths[which - 1]);
    op.operands.push_back(elements.operand());
    op.operands.push_back(scales.operand());
    return elements;
  };
  const Known left = side(1, m, k, 1), right = side(2, k, n, 0);
  Facts acc{.bound = 0};
  if (chance(40)) {
    const Known sum = fit(valueOf(f32, op.shape), wholeNumbers(256));
    op.operands.push_back(sum.operand());
    acc = sum.facts;
  }
  const auto facts = productOf(bf16, left.facts, right.facts, acc, k, Precision::ieee);
  if (!facts)
    return false;
  emit(op, *facts);
  return true;
}

bool Generator::dotLoop() {
  const Type type = pick(even ? narrowTypes : factorTypes), sums = sumType(type);
  const auto [m, k, n] = productExtents();
  // The whole length is a multiple of the tile's or not, and known while tracing or when the program runs.
  int64_t length = std::max<int64_t>(1, between(1, even ? 6 : 3) * k - (chance(50) ? below(k) : 0));
  Operand end = Operand::number(length);
  if (chance(50)) {
    const int index = window(Access::read, type, {m, k});
    const Shape &extents = program.windows[index].extents;
    if (extents.back() <= 6 * k) {
      length = extents.back();
      const int axis = static_cast<int>(extents.size()) - 1;
      end = emit({.verb = Verb::dim, .type = i64, .window = index, .axes = {axis}}, wholeNumbers(1e3)).operand();
    }
  }
  const Operand zero = isFloat(sums) ? Operand::number(0.0) : Operand::number(int64_t(0));
  const Known start = chance(70) ? emit({.verb = Verb::full, .type = sums, .shape = {m, n}, .operands = {zero}}, {})
                                 : fit(valueOf(sums, {m, n}), wholeNumbers(64));
  const Known acc = variable(start, start.facts);
  Facts ends = acc.facts; // nothing else reads the accumulator before the loop is done
  Op loop{.verb = Verb::loop, .type = i64, .operands = {Operand::number(int64_t(0)), end, Operand::number(k)}};
  scope(loop.body, [&] {
    const Operand at = openLoop(loop, static_cast<double>(length)).operand();
    const Known left = factor(type, {m, k}, &at, 1), right = factor(drawPartner(type), {k, n}, &at, 0);
    Op op{.verb = Verb::dot, .type = sums, .shape = {m, n}, .precision = precisionFor(type)};
    const int64_t terms = cdiv(std::max<int64_t>(1, length), k) * k;
    ends = *productOf(type, left.facts, right.facts, start.facts, terms, op.precision);
    op.operands = {left.operand(), right.operand(), acc.operand()};
    assign(acc, emit(op, ends));
  });
  drawHints(loop);
  emit(loop, {});
  const auto after = std::ranges::find(known, acc.value, &Known::value);
  after->facts = ends;
  after->isVariable = false;
  return true;
}

} // namespace kiln::fuzz

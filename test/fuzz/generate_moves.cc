// Chains of permutations of a tile that each step reads twice. Tiles split and joined: parts of them, pairs,
// concatenation, padding, replacement of a part.

#include "test/fuzz/generator.h"
#include "test/fuzz/verbs.h"

#include <array>

namespace kiln::fuzz {

/// The maximum number of elements of such a tile: one warp can still hold twice as many.
static constexpr int64_t maxElements = 2048;

/// Part of a tile, with positive or negative steps.
Known Generator::extract(const Known &from) {
  Op op{.verb = Verb::extract, .type = from.type, .shape = from.shape, .operands = {from.operand()}};
  for (int64_t &extent : op.shape) {
    const int64_t whole = extent;
    int64_t step = 1;
    if (!chance(40)) {
      step = chance(60) ? 1 : between(1, std::min<int64_t>(whole, 5));
      extent = chance(40) ? (whole - 1) / step + 1 : between(1, (whole - 1) / step + 1);
    }
    const int64_t first = below(whole - (extent - 1) * step), last = first + (extent - 1) * step;
    const bool isBack = chance(25);
    op.begin.push_back(isBack ? last : first);
    op.steps.push_back(isBack ? -step : step);
  }
  return emit(op, from.facts);
}

/// A tile of the same shape with the elements in another order.
Known Generator::permuted(const Known &from) {
  const auto rank = static_cast<int>(from.shape.size());
  Op op{.verb = Verb::roll, .type = from.type, .shape = from.shape, .operands = {from.operand()}};
  const auto axis = static_cast<int>(below(rank));
  if (const int64_t draw = below(3); draw == 0) {
    op.axes = {axis};
    op.which = static_cast<int>(between(-9, 9));
  } else if (draw == 1) { // backwards
    op.verb = Verb::extract;
    for (int along = 0; along < rank; ++along) {
      op.begin.push_back(along == axis ? from.shape[along] - 1 : 0);
      op.steps.push_back(along == axis ? -1 : 1);
    }
  } else { // transposed, as a tile of two dimensions
    const int64_t count = countOf(from.shape), rows = count % 4 == 0 ? 4 : count % 3 == 0 ? 3 : 1;
    op.verb = Verb::reshape;
    op.shape = {rows, count / rows};
    Op transpose{.verb = Verb::transpose,
                 .type = from.type,
                 .shape = {count / rows, rows},
                 .operands = {emit(op, from.facts).operand()},
                 .axes = {1, 0}};
    op.operands = {emit(transpose, from.facts).operand()};
    op.shape = from.shape;
  }
  return emit(op, from.facts);
}

bool Generator::chainStatement() {
  const auto found = find([](const Known &k) {
    return !k.shape.empty() && k.shape.size() <= 3 && k.type != boolean && countOf(k.shape) <= maxElements;
  });
  if (!found)
    return false;
  Known last = *found;
  for (int64_t steps = between(3, 12); steps > 0; --steps) {
    const Known moved = permuted(last);
    const char *const text = chance(50) ? "$0 + $1" : "max($0, $1)";
    const auto facts = elementwise()[elementwiseRow(text)].facts(last.type, std::array{last.facts, moved.facts});
    if (facts)
      last = apply(text, {last.operand(), moved.operand()}, last.type, last.shape, *facts);
    else
      last = moved;
  }
  return true;
}

bool Generator::moveStatement() {
  const auto found = find([](const Known &k) { return !k.shape.empty() && k.shape.size() <= 3; }, true);
  if (!found)
    return false;
  const auto rank = static_cast<int>(found->shape.size());
  const int axis = static_cast<int>(below(rank));
  const int64_t count = countOf(found->shape), draw = below(12);
  Op op{.type = found->type, .shape = found->shape, .operands = {found->operand()}};
  Facts facts = found->facts;
  const auto beside = [&](const Shape &shape) {
    const Known other = valueOf(found->type, shape, found->facts.exact());
    op.operands.push_back(other.operand());
    facts = either(facts, other.facts);
  };
  if (draw < 3) {
    extract(*found);
    return true;
  }
  if (draw < 5) { // the halves of pairs, from its last dimension or from neighbours in it
    if (found->shape.back() % 2 != 0)
      return false;
    Known pairs = *found;
    if (pairs.shape.back() != 2 || rank == 1) {
      op.verb = Verb::reshape;
      op.shape.back() /= 2;
      op.shape.push_back(2);
      pairs = emit(op, facts);
    }
    Op half{.verb = Verb::split, .type = found->type, .shape = pairs.shape, .operands = {pairs.operand()}};
    half.shape.pop_back();
    for (half.which = 0; half.which < 2; ++half.which)
      if (chance(85))
        emit(half, facts);
    return true;
  }
  if (draw < 9) { // two, or several, of them
    if (2 * count > maxElements)
      return false;
    if (draw < 8) {
      op.verb = draw < 6 ? Verb::join : Verb::interleave;
      beside(found->shape);
      if (op.verb == Verb::join)
        op.shape.push_back(2);
      else
        op.shape.back() *= 2;
    } else {
      op.verb = Verb::concat;
      op.axes = {axis};
      for (int64_t parts = between(1, 3); parts > 0; --parts) {
        Shape part = found->shape;
        if (chance(50))
          part[axis] = pick(palette);
        if (countOf(op.shape) + countOf(part) > maxElements)
          continue;
        beside(part);
        op.shape[axis] += part[axis];
      }
    }
  } else if (draw < 10) {
    op.verb = Verb::pad;
    for (int64_t &extent : op.shape) {
      op.begin.push_back(chance(50) ? 0 : between(1, 5));
      op.steps.push_back(chance(50) ? 0 : between(1, 5));
      extent += op.begin.back() + op.steps.back();
    }
    if (countOf(op.shape) > maxElements)
      return false;
    op.operands.push_back(literal(found->type));
    facts = either(facts, literalFacts(found->type, op.operands.back()));
  } else if (draw < 11) {
    op.verb = Verb::insert;
    Shape part;
    for (const int64_t extent : found->shape) {
      part.push_back(chance(50) ? extent : between(1, extent));
      op.begin.push_back(below(extent - part.back() + 1));
    }
    beside(part);
  } else {
    if (!found->facts.exact() || !hasArithmetic(found->type))
      return false;
    op.verb = Verb::topk;
    op.axes = {axis};
    op.shape[axis] = between(1, found->shape[axis]);
    op.which = static_cast<int>(below(2));
    if (op.which == 1) {
      op.type = i32;
      facts = wholeNumbers(static_cast<double>(found->shape[axis]));
    }
  }
  emit(op, facts);
  return true;
}

} // namespace kiln::fuzz

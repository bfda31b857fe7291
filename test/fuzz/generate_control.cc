// Loops and branches with the variables that they change.

#include "test/fuzz/generator.h"
#include "test/fuzz/verbs.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kiln::fuzz {

void Generator::scope(std::vector<Op> &into, const std::function<void()> &body) {
  const size_t before = known.size();
  std::vector<Op> *const outer = std::exchange(block, &into);
  ++depth;
  body();
  --depth;
  block = outer;
  known.resize(before);
}

/// Bounds of a loop of a few iterations: numbers, or known only when the program runs.
void Generator::drawRange(Op &loop, double &bound) {
  int64_t begin = chance(60) ? 0 : between(-5, 5), step = chance(50) ? 1 : between(2, 9);
  int64_t end = begin + between(0, 4) * step - (step > 1 ? below(step) : 0);
  Operand from = Operand::number(begin), to = Operand::number(end), by = Operand::number(step);
  if (chance(40) && !program.scalars.empty()) {
    const int which = static_cast<int>(below(program.scalars.size()));
    const int64_t value = program.scalars[which];
    if (chance(60)) { // the end
      to = Operand::of(which);
      end = value;
      by = Operand::number(step = std::max<int64_t>(1, (end - begin) / between(1, 4)));
    } else if (value != 0 || end - begin <= 6) { // the step; 0 counts as 1
      by = Operand::of(which);
      step = value;
    }
  } else if (chance(20) && !program.windows.empty()) {
    const int index = static_cast<int>(below(program.windows.size()));
    end = program.windows[index].extents[0];
    Op dim{.verb = Verb::dim, .type = i64, .window = index, .axes = {0}};
    to = emit(dim, wholeNumbers(static_cast<double>(end))).operand();
    by = Operand::number(step = std::max<int64_t>(1, (end - begin) / between(1, 4)));
  }
  bound = static_cast<double>(std::max({std::abs(begin), std::abs(end)}));
  if (by.value < 0 && chance(25))
    by = Operand::number(step = -step);
  if (step < 0) // down
    std::swap(from, to);
  loop.operands = {from, to, by};
}

/// Whether an operation in a loop may end it, or an iteration of it.
static bool leaves(const std::vector<Op> &ops) {
  return std::ranges::any_of(
      ops, [](const Op &op) { return op.verb == Verb::leave || leaves(op.body) || leaves(op.otherwise); });
}

void Generator::drawHints(Op &loop) {
  if (leaves(loop.body) || !chance(25))
    return;
  loop.hints = {.unroll = static_cast<int>(between(1, 4)), .pipeline = chance(75)};
  if (loop.hints.pipeline && chance(50))
    loop.hints.stages = static_cast<int>(between(1, 4));
  // The tiles of all stages fit the 99 KB of shared memory of the smallest GPU, at most five stages.
  int64_t bytes = 1;
  for (const Op &op : loop.body)
    bytes += op.verb == Verb::load ? countOf(op.shape) * bytesOf(op.type) : 0;
  if (const int64_t stages = loop.hints.stages > 0 ? loop.hints.stages : program.stages; stages > 0) {
    const int64_t most = std::min(5 / stages, (int64_t{96} << 10) / (bytes * stages));
    loop.hints.unroll = static_cast<int>(std::clamp<int64_t>(most, 1, loop.hints.unroll));
  }
}

Known Generator::openLoop(Op &loop, double bound) {
  loop.result = program.values++;
  uses.resize(program.values);
  known.push_back({.value = loop.result, .type = i64, .facts = {.bound = bound, .openZero = false}});
  return known.back();
}

Known Generator::variable(const Known &value, const Facts &facts) {
  Op op{.verb = Verb::copy, .type = value.type, .shape = value.shape, .operands = {value.operand()}};
  emit(op, facts);
  known.back().isVariable = true;
  return known.back();
}

/// One or two new variables for a loop or a branch to change, and perhaps an existing one.
std::vector<Known> Generator::variables() {
  std::vector<Known> result;
  for (int64_t count = between(1, 2); count > 0; --count) {
    const auto value = find([](const Known &k) { return k.facts.exact(); });
    if (!value)
      break;
    const bool isSmall = isFloat(value->type) && chance(40);
    const Facts facts = isSmall ? wholeNumbers(32) : anything(value->type);
    result.push_back(variable(fit(*value, facts), facts));
  }
  if (const auto other = find([](const Known &k) { return k.isVariable; }); other && chance(40))
    result.push_back(*other);
  return result;
}

void Generator::assign(const Known &variable, const Known &value) {
  Op op{.verb = Verb::assign, .result = variable.value, .type = variable.type, .shape = variable.shape};
  op.operands = {value.operand()};
  emit(op, {});
}

void Generator::drawBody(const std::vector<Known> &changed) {
  for (int64_t count = between(1, depth > 1 ? 2 : 3); count > 0; --count)
    statement();
  const Known last = known.back();
  if (uses[last.value] == 0 && last.shape.size() <= 4 && chance(60))
    store(last);
  for (const Known &variable : changed)
    assign(variable, fit(valueOf(variable.type, variable.shape), variable.facts));
}

bool Generator::loopStatement() {
  if (depth > 2)
    return false;
  const std::vector<Known> changed = variables();
  Op loop{.verb = Verb::loop, .type = i64};
  double bound = 0;
  drawRange(loop, bound);
  scope(loop.body, [&] {
    openLoop(loop, bound);
    ++loops;
    drawBody(changed);
    --loops;
  });
  drawHints(loop);
  emit(loop, {});
  return true;
}

/// Adjacent blocks of one view in a loop over one of its dimensions, summed: a stencil, a convolution, or column sums,
/// by blocks of the view's rank or of a lower one.
bool Generator::stencilStatement() {
  if (depth > 2)
    return false;
  std::vector<Type> numbers = types;
  std::erase(numbers, boolean);
  if (numbers.empty())
    return false;
  const Type type = pick(numbers);
  Shape shape = drawShape(static_cast<int>(between(1, 3)));
  if (shape.size() <= 2 && chance(60) && (shape.size() == 1 || shape[0] <= 16))
    shape.back() = pick(std::vector<int64_t>{32, 64, 100, 130});
  if (countOf(shape) > 4096) // of which there are several
    return false;
  const int index = window(Access::read, type, shape);
  const auto rank = static_cast<int>(program.windows[index].extents.size());
  const int own = isOwn(purposes[index]) ? 1 : 0; // other programs write the other parts
  const int moving = chance(80) ? std::max(own, rank - 2) : static_cast<int>(between(own, rank - 1));
  const std::vector<Operand> begin = offsets(index, shape);
  const std::vector<Known> changed = variables();
  const auto add = static_cast<int>(elementwiseRow("$0 + $1"));
  Op loop{.verb = Verb::loop, .type = i64};
  double bound = 0;
  drawRange(loop, bound);
  scope(loop.body, [&] {
    const Known position = openLoop(loop, bound);
    ++loops;
    std::optional<Known> sum;
    for (int64_t k = 0, count = between(2, 6); k < count; ++k) {
      std::vector<Operand> at = begin;
      at[moving] =
          apply("$0 + $1", {position.operand(), Operand::number(k - count / 2)}, i64, {}, anything(i64)).operand();
      const Known block = loadAt(index, shape, at);
      const auto facts =
          sum ? elementwise()[add].facts(type, std::array{sum->facts, block.facts}) : std::optional(block.facts);
      if (!facts)
        break;
      sum = sum ? apply("$0 + $1", {sum->operand(), block.operand()}, type, shape, *facts) : block;
    }
    if (sum && chance(70))
      store(*sum);
    drawBody(changed);
    --loops;
  });
  drawHints(loop);
  emit(loop, {});
  return true;
}

/// A while of a few iterations, or of fewer, by the value of a variable that its body may change.
bool Generator::repeatStatement() {
  if (depth > 2)
    return false;
  std::vector<Known> changed = variables();
  const int64_t rounds = between(0, 4);
  Op repeat{.verb = Verb::repeat, .type = i64, .operands = {Operand::number(rounds)}};
  if (chance(60)) {
    changed.push_back(variable(branchCondition(), anything(boolean)));
    repeat.operands.push_back(changed.back().operand());
  }
  scope(repeat.body, [&] {
    openLoop(repeat, static_cast<double>(rounds));
    ++loops;
    drawBody(changed);
    --loops;
  });
  emit(repeat, {});
  return true;
}

Known Generator::branchCondition() {
  return chance(60)
             ? apply("$0 < $1", {scalar().operand(), Operand::number(between(-2, 20))}, boolean, {}, anything(boolean))
             : condition({});
}

bool Generator::whenStatement() {
  if (depth > 2)
    return false;
  const std::vector<Known> changed = variables();
  Op when{.verb = Verb::if_, .type = boolean, .operands = {branchCondition().operand()}};
  scope(when.body, [&] { drawBody(changed); });
  if (chance(50))
    scope(when.otherwise, [&] { drawBody(changed); });
  emit(when, {});
  return true;
}

/// Leaves a loop, its iteration or the program. If the program's index matters, no program leaves, because its later
/// accesses are its own.
bool Generator::leaveStatement() {
  const bool ends = loops == 0 || chance(15);
  if (isAnyones || (ends && !chance(20)))
    return false;
  Op leave{.verb = Verb::leave, .type = boolean, .operands = {branchCondition().operand()}};
  leave.which = ends ? 2 : static_cast<int>(below(2));
  emit(leave, {});
  return true;
}

} // namespace kiln::fuzz

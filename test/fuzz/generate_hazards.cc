// Accesses that must not be reordered: memory that a loop updates in place, and the results of all other programs that
// the last program of a grid reads.

#include "dialect/dsl/Plan.h"
#include "test/fuzz/generator.h"

#include <algorithm>

namespace kiln::fuzz {

/// A loop over tiles of a view. Each tile is read, at its position or next to it, and written.
bool Generator::sweep() {
  if (program.grid > 1 || depth > 1)
    return false; // a dimension selects the program's part
  const Type type = pick(types);
  const Shape tile = drawShape(static_cast<int>(between(1, 2)));
  const int target = window(Access::write, type, tile), source = chance(50) ? target : sibling(target, Access::read);
  const Facts facts = program.buffers[program.windows[target].buffer].facts;
  const size_t dropped = program.windows[target].extents.size() - tile.size(), axis = dropped + below(tile.size());
  const int64_t length = program.windows[target].extents[axis], extent = tile[axis - dropped];
  const int64_t step = std::max(chance(70) ? extent : between(1, 2 * extent), cdiv(length, 6));
  const Operand begin = Operand::number(chance(70) ? 0 : between(-3, 3)), by = Operand::number(step);
  Operand end = Operand::number(length);
  if (chance(60))
    end = emit({.verb = Verb::dim, .type = i64, .window = target, .axes = {static_cast<int>(axis)}},
               wholeNumbers(static_cast<double>(length)))
              .operand();
  Op loop{.verb = Verb::loop, .type = i64, .operands = {begin, end, by}};
  scope(loop.body, [&] {
    const Operand at = openLoop(loop, static_cast<double>(length + 3)).operand();
    std::vector<Operand> to = offsets(target, tile), from = chance(70) ? to : offsets(target, tile);
    to[axis] = from[axis] = at;
    if (chance(source == target ? 60 : 30))
      from[axis] = apply("$0 + $1", {at, Operand::number(chance(50) ? between(-2, 2) : extent)}, i64, {}, anything(i64))
                       .operand();
    loadAt(source, tile, from);
    if (chance(60))
      statement();
    storeAt(target, fit(valueOf(type, tile), facts), to);
  });
  drawHints(loop);
  emit(loop, {});
  return true;
}

/// Keeps other operations from using a view whose content depends on the progress of other programs.
int Generator::claimed(int window) {
  purposes[window] = Access::atomic;
  return window;
}

std::vector<Operand> Generator::zeros(int window) const {
  return std::vector<Operand>(program.windows[window].extents.size(), Operand::number(int64_t(0)));
}

/// Every program reads shared memory and counts itself. The last one overwrites that memory, and then all store the
/// values that they read.
bool Generator::handOver() {
  if (program.grid == 1 || depth > 0)
    return false;
  const auto value = find([](const Known &k) { return k.facts.exact() && k.shape.size() <= 3; });
  if (!value)
    return false;
  const int shared = claimed(newWindow(Access::atomic, value->type, value->shape));
  const Facts facts = program.buffers[program.windows[shared].buffer].facts;
  const Known read = loadAt(shared, value->shape, zeros(shared));
  const Known left = number(value->type, value->shape); // the same in every program: any may be the last
  const Known isLast = countPrograms();
  Op when{.verb = Verb::if_, .type = boolean, .operands = {isLast.operand()}};
  isAnyones = true;
  scope(when.body, [&] { storeAt(shared, fit(left, facts), zeros(shared)); });
  isAnyones = false;
  emit(when, {});
  if (chance(60))
    statement(); // time for the last one
  const int kept = newWindow(Access::write, value->type, value->shape);
  std::vector<Operand> own = zeros(kept);
  own[0] = programNumber.operand();
  storeAt(claimed(kept), fit(read, program.buffers[program.windows[kept].buffer].facts), own);
  return true;
}

/// Adds one to a counter of all programs; returns whether this program is the last. No other value may depend on that.
Known Generator::countPrograms() {
  const int counter = claimed(newWindow(Access::atomic, i32, {}));
  program.buffers[program.windows[counter].buffer].fill = Buffer::Fill::zero;
  const Known one = emit({.verb = Verb::full, .type = i32, .operands = {Operand::number(int64_t(1))}}, wholeNumbers(1));
  Op count{.verb = Verb::atomic, .type = i32, .which = 3, .window = counter, .axes = {0}};
  count.offsets = zeros(counter);
  count.operands = {one.operand()};
  const Known before = emit(count, anything(i32));
  const Known isLast = apply("$0 == $1", {before.operand(), Operand::number(program.grid - 1)}, boolean, {}, {});
  std::erase_if(known, [&](const Known &k) { return k.value == before.value || k.value == isLast.value; });
  return isLast;
}

/// Every program stores a row and counts itself. The last one reads the rows of all.
bool Generator::lastProgram() {
  if (program.grid == 1 || depth > 0)
    return false;
  const auto value = find([](const Known &k) { return k.facts.exact() && k.shape.size() <= 3; });
  if (!value)
    return false;
  const int rows = newWindow(Access::write, value->type, value->shape);
  const Facts facts = program.buffers[program.windows[rows].buffer].facts;
  std::vector<Operand> own = zeros(rows);
  own[0] = programNumber.operand();
  storeAt(claimed(rows), fit(*value, facts), own);

  const Known isLast = countPrograms();
  Shape all = value->shape;
  all.insert(all.begin(), program.grid);
  const size_t rank = program.windows[rows].extents.size();
  all.insert(all.begin() + 1, rank - all.size(), 1);
  const int result = claimed(newWindow(Access::atomic, value->type, all));
  Op when{.verb = Verb::if_, .type = boolean, .operands = {isLast.operand()}};
  isAnyones = true;
  scope(when.body, [&] { storeAt(result, loadAt(rows, all, zeros(rows)), zeros(result)); });
  isAnyones = false;
  emit(when, {});
  return true;
}

} // namespace kiln::fuzz

// Makes a failing program smaller: removes every operation without which it still fails.

#include "test/fuzz/run.h"

#include <algorithm>

namespace kiln::fuzz {

/// Whether the operation does something besides giving a value.
static bool changesMemory(Verb verb) { return verb == Verb::atomic || verb == Verb::compareExchange; }

static int countOf(const std::vector<Op> &ops) {
  int count = 0;
  for (const Op &op : ops)
    count += 1 + countOf(op.body) + countOf(op.otherwise);
  return count;
}

/// Operation `index` in the order of the text; null if there are fewer.
static Op *at(std::vector<Op> &ops, int &index) {
  for (Op &op : ops) {
    if (index-- == 0)
      return &op;
    for (std::vector<Op> *inner : {&op.body, &op.otherwise})
      if (Op *found = at(*inner, index))
        return found;
  }
  return nullptr;
}

static bool erase(std::vector<Op> &ops, int &index) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (index-- == 0) {
      ops.erase(ops.begin() + i);
      return true;
    }
    if (erase(ops[i].body, index) || erase(ops[i].otherwise, index))
      return true;
  }
  return false;
}

static void markUses(const std::vector<Op> &ops, std::vector<bool> &used) {
  for (const Op &op : ops) {
    for (const auto *operands : {&op.operands, &op.offsets})
      for (const Operand &operand : *operands)
        if (operand.value >= 0)
          used[operand.value] = true;
    for (const Selected &selected : op.selects)
      if (selected.index.value >= 0)
        used[selected.index.value] = true;
    if (op.mask >= 0)
      used[op.mask] = true;
    if (op.verb == Verb::assign)
      used[op.result] = true;
    markUses(op.body, used);
    markUses(op.otherwise, used);
  }
}

std::vector<bool> usedValues(const Program &program) {
  std::vector<bool> used(program.values);
  markUses(program.ops, used);
  return used;
}

static void dropUnused(std::vector<Op> &ops, const std::vector<bool> &used) {
  for (Op &op : ops) {
    dropUnused(op.body, used);
    dropUnused(op.otherwise, used);
  }
  std::erase_if(ops, [&](const Op &op) {
    const bool isEmpty = (op.verb == Verb::loop || op.verb == Verb::repeat || op.verb == Verb::if_) &&
                         op.body.empty() && op.otherwise.empty();
    return isEmpty || (givesValue(op.verb) && !changesMemory(op.verb) && !used[op.result]);
  });
}

/// Without the values that nothing uses.
static Program tidied(Program program) {
  for (int before = -1; before != countOf(program.ops);) {
    before = countOf(program.ops);
    dropUnused(program.ops, usedValues(program));
  }
  return program;
}

static void markWindows(const std::vector<Op> &ops, std::vector<bool> &used) {
  for (const Op &op : ops) {
    if (op.window >= 0)
      used[op.window] = true;
    markWindows(op.body, used);
    markWindows(op.otherwise, used);
  }
}

static void renumberWindows(std::vector<Op> &ops, const std::vector<int> &numbers) {
  for (Op &op : ops) {
    if (op.window >= 0)
      op.window = numbers[op.window];
    renumberWindows(op.body, numbers);
    renumberWindows(op.otherwise, numbers);
  }
}

/// Without the windows that nothing reads or writes.
static Program withoutWindows(Program program) {
  std::vector<bool> used(program.windows.size());
  markWindows(program.ops, used);
  std::vector<int> numbers(used.size());
  std::vector<Window> windows;
  for (size_t i = 0; i < used.size(); ++i) {
    numbers[i] = static_cast<int>(windows.size());
    if (used[i])
      windows.push_back(program.windows[i]);
  }
  const auto usedBefore = [&](int window) {
    return static_cast<int>(std::count(used.begin(), used.begin() + window, true));
  };
  for (Parameter &group : program.groups) {
    const int begin = usedBefore(group.begin);
    group.count = usedBefore(group.begin + group.count) - begin;
    group.begin = begin;
  }
  program.windows = std::move(windows);
  renumberWindows(program.ops, numbers);
  return program;
}

/// The program without operation `index`, or with zeros as its result.
static Program without(Program program, int index) {
  int place = index;
  Op &op = *at(program.ops, place);
  if (givesValue(op.verb) && op.verb != Verb::full) {
    const Operand zero = isFloat(op.type) ? Operand::number(0.0) : Operand::number(int64_t(0));
    op = {.verb = Verb::full, .result = op.result, .type = op.type, .shape = op.shape, .operands = {zero}};
  } else if (!givesValue(op.verb)) {
    erase(program.ops, place = index);
  }
  return tidied(std::move(program));
}

Program shrink(Program program, const std::function<bool(const Program &)> &fails) {
  if (Program smaller = program; smaller.grid > 1) {
    smaller.grid = 1;
    smaller.axes = {1, 1, 1};
    if (fails(smaller))
      program = smaller;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int index = countOf(program.ops) - 1; index >= 0; --index) {
      if (index >= countOf(program.ops))
        continue;
      int place = index;
      const Op &op = *at(program.ops, place);
      if (op.verb == Verb::full)
        continue;
      Program smaller = without(program, index);
      if (!fails(smaller))
        continue;
      program = std::move(smaller);
      changed = true;
    }
  }
  if (Program smaller = withoutWindows(program); fails(smaller))
    program = std::move(smaller);
  if (Program smaller = program; !smaller.groups.empty()) {
    smaller.groups.clear();
    if (fails(smaller))
      return smaller;
  }
  return program;
}

} // namespace kiln::fuzz

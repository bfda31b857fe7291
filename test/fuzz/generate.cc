// A whole program: its types and extents, statements drawn by weight, and stores of unused values.

#include "test/fuzz/generator.h"

#include <algorithm>

namespace kiln::fuzz {

static constexpr int maxValues = 70;

Generator::Generator(uint64_t seed, int number) : random(seed * 1000003 + static_cast<uint64_t>(number)) {
  program.seed = seed;
  program.number = number;
  if (chance(25)) {
    static const std::vector<Shape> grids = {{2, 1, 1}, {3, 1, 1}, {5, 1, 1}, {1, 4, 1},
                                             {1, 1, 3}, {2, 2, 1}, {2, 1, 3}};
    program.axes = pick(grids);
    program.grid = program.axes[0] * program.axes[1] * program.axes[2];
  }
  program.warps = 1 << below(4);
  program.stages = chance(50) ? 0 : 1 + below(5);
  block = &program.ops;
  static const std::vector<Type> all = {f32,     f32, f32, f64, bf16, f16, i64,    i32,    i32, i8,
                                        boolean, u8,  u16, u32, u64,  i16, f8e4m3, f8e5m2, f32, i32};
  for (int i = 0; i < 2; ++i)
    types.push_back(pick(all));
  even = chance(15);
  static const std::vector<int64_t> evenLengths = {16, 32, 32, 64, 64};
  static const std::vector<int64_t> lengths = {1,  2,  3,  4,  5,  7,  8,  8,  9,   15, 16,
                                               16, 17, 24, 31, 32, 33, 48, 64, 100, 128};
  for (int i = 0; i < 3; ++i)
    palette.push_back(pick(even ? evenLengths : lengths));
  for (int64_t count = between(0, 3); count > 0; --count) {
    const int64_t value = chance(85) ? between(0, 24) : between(-20, 60);
    known.push_back(
        {.value = program.values++, .type = i64, .facts = wholeNumbers(static_cast<double>(std::abs(value)))});
    program.scalars.push_back(value);
  }
  uses.resize(program.values);
  if (program.grid > 1)
    numberPrograms();
  for (const Type type : types)
    load(type, drawShape(static_cast<int>(between(1, 2))));
  for (int64_t count = between(1, 6); count > 0; --count)
    statement();
  finish();
  groupWindows();
}

/// The program's number in the grid, the first axis running fastest.
void Generator::numberPrograms() {
  for (int axis = 2; axis >= 0; --axis) {
    if (program.axes[axis] == 1)
      continue;
    const Known along = emit({.verb = Verb::programId, .type = i64, .axes = {axis}}, wholeNumbers(8));
    if (programNumber.value >= 0) {
      const Known count = emit({.verb = Verb::numPrograms, .type = i64, .axes = {axis}}, wholeNumbers(8));
      const Known rows = apply("$0 * $1", {programNumber.operand(), count.operand()}, i64, {}, wholeNumbers(8));
      programNumber = apply("$0 + $1", {rows.operand(), along.operand()}, i64, {}, wholeNumbers(8));
    } else {
      programNumber = along;
    }
  }
}

/// A shape of the program's extents, of not too many elements.
Shape Generator::drawShape(int rank) {
  Shape shape;
  int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t extent = chance(90) ? pick(palette) : between(1, 6);
    shape.push_back(count * extent <= 2048 ? extent : 1);
    count *= shape.back();
  }
  if (rank > 0 && rank < 4 && chance(8))
    shape.insert(shape.begin() + below(rank + 1), 1);
  return shape;
}

bool givesValue(Verb verb) {
  return verb != Verb::store && verb != Verb::storeRows && verb != Verb::atomicStore && verb != Verb::deviceAssert &&
         verb != Verb::assume && verb != Verb::assign && verb != Verb::loop && verb != Verb::repeat &&
         verb != Verb::if_ && verb != Verb::leave;
}

void Generator::use(const std::vector<Operand> &operands) {
  for (const Operand &operand : operands)
    if (operand.value >= 0)
      ++uses[operand.value];
}

Known Generator::emit(Op op, const Facts &facts) {
  use(op.operands);
  use(op.offsets);
  for (const Selected &selected : op.selects)
    use({selected.index});
  if (op.mask >= 0)
    use({Operand::of(op.mask)});
  Known result{.type = op.type, .shape = op.shape, .facts = facts};
  result.facts.openZero &= isFloat(op.type);
  if (givesValue(op.verb)) {
    op.result = result.value = program.values++;
    uses.resize(program.values);
    known.push_back(result);
  }
  block->push_back(std::move(op));
  return result;
}

void Generator::statement() {
  struct Choice {
    int weight;
    bool (Generator::*draw)();
  };
  static const Choice choices[] = {{34, &Generator::elementwiseStatement},
                                   {12, &Generator::reshapeStatement},
                                   {9, &Generator::moveStatement},
                                   {4, &Generator::chainStatement},
                                   {10, &Generator::reduceStatement},
                                   {8, &Generator::scanStatement},
                                   {3, &Generator::lookUpStatement},
                                   {8, &Generator::castStatement},
                                   {4, &Generator::creationStatement},
                                   {9, &Generator::dotStatement},
                                   {4, &Generator::dotLoop},
                                   {7, &Generator::loopStatement},
                                   {4, &Generator::stencilStatement},
                                   {4, &Generator::repeatStatement},
                                   {5, &Generator::whenStatement},
                                   {4, &Generator::leaveStatement},
                                   {3, &Generator::loadRows},
                                   {4, &Generator::loadNamed},
                                   {3, &Generator::storeNamed},
                                   {3, &Generator::storeRows},
                                   {4, &Generator::atomic},
                                   {4, &Generator::checkStatement},
                                   {4, &Generator::assumeStatement},
                                   {6, &Generator::sweep},
                                   {6, &Generator::lastProgram},
                                   {4, &Generator::handOver},
                                   {9, &Generator::loadStatement},
                                   {9, &Generator::storeStatement}};
  if (even && program.values < maxValues && chance(40) && dotLoop())
    return;
  int total = 0;
  for (const Choice &choice : choices)
    total += choice.weight;
  for (int tries = 0; tries < 8 && program.values < maxValues; ++tries) {
    int64_t draw = below(total);
    const Choice *choice = choices;
    while (draw >= choice->weight)
      draw -= (choice++)->weight;
    if ((this->*choice->draw)())
      return;
  }
}

bool Generator::loadStatement() {
  load(pick(types), drawShape(static_cast<int>(between(0, 4))));
  return true;
}

bool Generator::storeStatement() {
  const auto value = find([](const Known &k) { return k.shape.size() <= 4; }, true);
  return value && store(*value);
}

/// Stores unused values: the last ones, and those of variables.
void Generator::finish() {
  int left = 6;
  const std::vector<Known> inScope = known;
  for (auto value = inScope.rbegin(); value != inScope.rend() && left > 0; ++value)
    if ((uses[value->value] == 0 || (value->isVariable && chance(60))) && value->shape.size() <= 4) {
      store(*value);
      --left;
    }
}

/// Makes optional views and lists of some windows, and adds absent views and empty lists.
void Generator::groupWindows() {
  using Kind = Kernel::Parameter::Kind;
  if (!chance(40))
    return;
  const auto windows = static_cast<int>(program.windows.size());
  const auto addEmpty = [&](int at) {
    if (chance(8))
      program.groups.push_back({chance(50) ? Kind::list : Kind::optional, at, 0});
  };
  for (int at = 0; at < windows; ++at) {
    addEmpty(at);
    if (chance(30)) {
      const auto count = static_cast<int>(between(1, std::min(4, windows - at)));
      program.groups.push_back({Kind::list, at, count});
      at += count - 1;
    } else if (chance(30)) {
      program.groups.push_back({Kind::optional, at, 1});
    }
  }
  addEmpty(windows);
}

std::vector<Parameter> viewParameters(const Program &program) {
  std::vector<Parameter> all;
  int next = 0; // window
  const auto addUpTo = [&](int end) {
    for (; next < end; ++next)
      all.push_back({.begin = next});
  };
  for (const Parameter &group : program.groups) {
    addUpTo(group.begin);
    all.push_back(group);
    next += group.count;
  }
  addUpTo(static_cast<int>(program.windows.size()));
  return all;
}

std::string aboutOf(const Program &program, const Parameter &parameter) {
  if (program.number % 2 != 0 || parameter.count == 0 || parameter.kind == Kernel::Parameter::Kind::list)
    return "";
  return fmt::format("(E{})", fmt::join(program.windows[parameter.begin].extents, ", E"));
}

Program generate(uint64_t seed, int number) { return Generator(seed, number).take(); }

} // namespace kiln::fuzz

// Tracing a random program: each operation calls its function of the language.

#include "test/fuzz/program.h"
#include "test/fuzz/verbs.h"

#include <fmt/format.h>

namespace kiln::fuzz {

namespace {

struct Config {
  int warps = 4, stages = 0;
};

class Tracing {
public:
  Tracing(const Program &program, const std::vector<View> &views, const std::vector<Tile> &scalars)
      : views(views), values(program.values) {
    std::ranges::copy(scalars, values.begin());
    for (size_t i = 0; i < views.size(); ++i)
      for (const int axis : program.windows[i].asked)
        views[i].extent(axis);
    run(program.ops);
  }

private:
  const std::vector<View> &views;
  std::vector<std::optional<Tile>> values; // a tile lives as long as the variable of that name would in C++

  At at(const Operand &operand) const {
    if (operand.value >= 0)
      return At(*values[operand.value]);
    return operand.isReal ? At(operand.real) : At(operand.integer);
  }
  std::vector<At> at(const std::vector<Operand> &operands) const {
    std::vector<At> result;
    for (const Operand &operand : operands)
      result.push_back(at(operand));
    return result;
  }
  static std::vector<double> numbersOf(const std::vector<Operand> &operands) {
    std::vector<double> result;
    for (const Operand &operand : operands)
      result.push_back(operand.isReal ? operand.real : static_cast<double>(operand.integer));
    return result;
  }
  void run(const std::vector<Op> &ops) {
    for (const Op &op : ops)
      run(op);
  }
  /// The body of a loop or branch: its variables end with it.
  void runBody(const std::vector<Op> &ops) {
    run(ops);
    for (const Op &op : ops)
      if (op.verb != Verb::assign && op.result >= 0)
        values[op.result].reset();
  }
  void run(const Op &op);
  Tile resultOf(const Op &op) const;
  Tile accessed(const Op &op) const;
  View viewOf(const Op &op) const;
  At maskOf(const Op &op) const;
  Offsets rowsOf(const Op &op) const;
};

} // namespace

View Tracing::viewOf(const Op &op) const {
  View view = views[op.window];
  for (const Sliced &sliced : op.slices)
    view = view.slice(sliced.axis, sliced.begin, sliced.end);
  for (const Selected &selected : op.selects)
    view = view.select(selected.axis, at(selected.index));
  return view;
}

At Tracing::maskOf(const Op &op) const { return op.mask < 0 ? At(true) : At(*values[op.mask]); }

/// The subscripts of rows by their numbers.
Offsets Tracing::rowsOf(const Op &op) const {
  Offsets subscripts = at(op.offsets);
  subscripts.insert(subscripts.begin(), at(op.operands[0]));
  return subscripts;
}

/// Operations that read or write memory and give a tile.
Tile Tracing::accessed(const Op &op) const {
  using Change = Tile (*)(View, Offsets, At, Order, AtomicOptions, Loc);
  static constexpr std::array<Change, atomicNames.size()> changes = {atomic_add, atomic_min, atomic_max,     atomic_and,
                                                                     atomic_or,  atomic_xor, atomic_exchange};
  const View view = viewOf(op);
  const auto padding = static_cast<Padding>(op.which);
  const auto order = static_cast<Order>(op.which);
  const Shape blocks(op.shape.begin() + op.index, op.shape.end());
  switch (op.verb) {
  case Verb::load:
    return load(view, at(op.offsets), blocks, {padding, maskOf(op), static_cast<Cache>(op.cache)});
  case Verb::loadRows:
    return load(view, rowsOf(op), Shape(op.shape.begin() + 1, op.shape.end()), padding);
  case Verb::atomicLoad:
    return atomic_load(view, at(op.offsets), blocks, order, {.scope = op.scope});
  case Verb::atomic:
    return changes[op.axes[0]](view, at(op.offsets), at(op.operands[0]), order, {maskOf(op), op.scope}, here());
  case Verb::compareExchange:
    return atomic_compare_exchange(view, at(op.offsets), at(op.operands[0]), at(op.operands[1]), order,
                                   {maskOf(op), op.scope});
  default:
    return view.dim(op.axes[0]);
  }
}

/// A product; operand number `which`, if any, has no scales.
static Tile dotScaled(const Op &op, const std::vector<At> &x) {
  const size_t b = op.which == 1 ? 1 : 2, acc = op.which == 0 ? 4 : 3;
  const Scales scaleA = op.which == 1 ? Scales() : Scales(x[1]), scaleB = op.which == 2 ? Scales() : Scales(x[b + 1]);
  return x.size() > acc ? dot_scaled(x[0], scaleA, x[b], scaleB, x[acc]) : dot_scaled(x[0], scaleA, x[b], scaleB);
}

Tile Tracing::resultOf(const Op &op) const {
  const std::vector<At> x = at(op.operands);
  switch (op.verb) {
  case Verb::elementwise:
    return elementwise()[op.which].trace(x);
  case Verb::cast:
    return op.which == 0   ? cast(x[0], op.type)
           : op.which == 5 ? stochastic_round(x[0], op.type, x[1])
                           : cast(x[0], op.type, static_cast<Rounding>(op.which - 1));
  case Verb::full:
    return full(op.type, op.shape, x[0]);
  case Verb::constant:
    return constant(op.type, op.shape, numbersOf(op.operands));
  case Verb::iota:
    return iota(op.shape[0], op.type);
  case Verb::programId:
    return program_id(op.axes[0]);
  case Verb::numPrograms:
    return num_programs(op.axes[0]);
  case Verb::reshape:
    return reshape(x[0], op.shape);
  case Verb::transpose:
    return transpose(x[0], op.axes);
  case Verb::broadcast:
    return broadcast(x[0], op.shape);
  case Verb::unsqueeze:
    return unsqueeze(x[0], op.axes[0]);
  case Verb::roll:
    return roll(x[0], op.which, op.axes[0]);
  case Verb::bitcast:
    return bitcast(x[0], op.type);
  case Verb::pack:
    return pack(x[0], op.axes[0]);
  case Verb::unpack:
    return unpack(x[0], op.type, op.axes[0]);
  case Verb::extract:
    return extract(x[0], op.begin, op.shape, op.steps);
  case Verb::split:
    return split(x[0])[op.which];
  case Verb::join:
    return join(x[0], x[1]);
  case Verb::interleave:
    return interleave(x[0], x[1]);
  case Verb::concat:
    return concat(x, op.axes[0]);
  case Verb::pad:
    return pad(x[0], op.begin, op.steps, x[1]);
  case Verb::insert:
    return insert(x[0], x[1], op.begin);
  case Verb::topk:
    return topk(x[0], op.shape[op.axes[0]], op.axes[0])[op.which];
  case Verb::softmax:
    return softmax(x[0], op.axes[0]);
  case Verb::reduce:
    return reductions()[op.which].trace(x[0], op.axes, op.keeps);
  case Verb::scan:
    return scans()[op.which].trace(x[0], op.axes, op.keeps);
  case Verb::gather:
    return gather(x[0], x[1], op.axes[0]);
  case Verb::histogram:
    return histogram(x[0], op.shape[0], maskOf(op));
  case Verb::dot:
    return x.size() == 3 ? dot(x[0], x[1], x[2], op.precision) : dot(x[0], x[1], op.precision);
  case Verb::dotScaled:
    return dotScaled(op, x);
  case Verb::randomBits:
    return random_words(x[0], x[1])[op.which];
  case Verb::random:
    return random(x[0], x[1]);
  case Verb::randomNormal:
    return random_normal(x[0], x[1]);
  default:
    return accessed(op);
  }
}

void Tracing::run(const Op &op) {
  switch (op.verb) {
  case Verb::store:
    return store(viewOf(op), at(op.offsets), at(op.operands[0]), {maskOf(op), static_cast<Cache>(op.cache)});
  case Verb::atomicStore:
    return atomic_store(viewOf(op), at(op.offsets), at(op.operands[0]), static_cast<Order>(op.which),
                        {maskOf(op), op.scope});
  case Verb::storeRows:
    return store(viewOf(op), rowsOf(op), at(op.operands[1]));
  case Verb::deviceAssert:
    return device_assert(at(op.operands[0]), "as drawn");
  case Verb::assume: {
    const Tile value = *values[op.operands[0].value];
    return assume((value % op.which == 0) & (value >= op.begin[0]) & (value <= op.begin[1]));
  }
  case Verb::copy:
  case Verb::assign:
    values[op.result] = *values[op.operands[0].value];
    return;
  case Verb::loop:
    for (Tile i : range(at(op.operands[0]), at(op.operands[1]), at(op.operands[2]), op.hints)) {
      values[op.result] = i;
      runBody(op.body);
      values[op.result].reset();
    }
    return;
  case Verb::repeat: {
    Tile rounds = 0;
    const auto goesOn = [&] {
      Tile more = rounds < at(op.operands[0]);
      return op.operands.size() > 1 ? more & at(op.operands[1]) : more;
    };
    for (Tile i : repeat_while(goesOn)) {
      rounds = rounds + 1;
      values[op.result] = i;
      runBody(op.body);
      values[op.result].reset();
    }
    return;
  }
  case Verb::leave: {
    static constexpr std::array<void (*)(At), leaveNames.size()> leaves = {continue_if, break_if, return_if};
    return leaves[op.which](at(op.operands[0]));
  }
  case Verb::if_:
    if (op.otherwise.empty())
      return if_(at(op.operands[0]), [&] { runBody(op.body); });
    return if_(at(op.operands[0]), [&] { runBody(op.body); }, [&] { runBody(op.otherwise); });
  default:
    values[op.result] = resultOf(op);
  }
}

Kernel kernelOf(const Program &program) {
  Kernel kernel;
  kernel.name = "program";
  kernel.loc = here();
  std::vector<size_t> sizes; // of the groups
  for (const Parameter &parameter : viewParameters(program))
    kernel.parameters.push_back({parameter.kind, "", aboutOf(program, parameter)});
  for (const Parameter &group : program.groups)
    sizes.push_back(static_cast<size_t>(group.count));
  kernel.parameters.insert(kernel.parameters.end(), program.scalars.size(), {Kernel::Parameter::Kind::scalar});
  kernel.namedExtents = findNamedExtents(kernel.parameters);
  kernel.call = [program, sizes](const std::vector<View> &views, const std::vector<Tile> &scalars,
                                 const std::vector<size_t> &counts, const std::string &) {
    if (counts != sizes || views.size() != program.windows.size())
      throw Error("expected as many views in each list as were drawn, but got others");
    Tracing(program, views, scalars);
  };
  kernel.fields = {field("warps", &Config::warps), field("stages", &Config::stages)};
  kernel.configText = [warps = program.warps, stages = program.stages](const std::string &) {
    return fmt::format("warps={},stages={}", warps, stages);
  };
  return kernel;
}

} // namespace kiln::fuzz

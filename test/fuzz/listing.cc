// A random program as text: C++ for `kilnc`, with its memory in comments.

#include "test/fuzz/program.h"
#include "test/fuzz/verbs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace kiln::fuzz {

static std::string textOf(const Operand &operand) {
  if (operand.value >= 0)
    return fmt::format("t{}", operand.value);
  if (!operand.isReal)
    return operand.integer == INT64_MIN ? "INT64_MIN" : fmt::format("{}", operand.integer);
  const std::string text = fmt::format("{}", operand.real);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

static std::string textOf(const std::vector<Operand> &operands) {
  std::vector<std::string> texts;
  for (const Operand &operand : operands)
    texts.push_back(textOf(operand));
  return fmt::format("{}", fmt::join(texts, ", "));
}

static std::string list(const std::string &text) { return "{" + text + "}"; }
static std::string list(const Shape &shape) { return fmt::format("{{{}}}", fmt::join(shape, ", ")); }

/// A row of elementwise() with its operands filled in.
static std::string filled(const char *pattern, const std::vector<Operand> &operands) {
  std::string text;
  for (const char *c = pattern; *c; ++c)
    text += *c == '$' ? textOf(operands[*++c - '0']) : std::string(1, *c);
  return text;
}

static std::string paddingOf(const Op &op) {
  static const char *const names[] = {"", ", Padding::neg_zero", ", Padding::inf", ", Padding::neg_inf",
                                      ", Padding::nan"};
  return names[op.which];
}

/// The view that an operation accesses.
static std::string viewOf(const Op &op) {
  std::string text = fmt::format("v{}", op.window);
  for (const Sliced &sliced : op.slices)
    text += fmt::format(".slice({}, {}, {})", sliced.axis, sliced.begin, sliced.end);
  for (const Selected &selected : op.selects)
    text += fmt::format(".select({}, {})", selected.axis, textOf(selected.index));
  return text;
}

/// The options of an access, with that padding.
static std::string besides(const Op &op, const std::string &padding) {
  static const char *const hints[] = {"", "Cache::evict_first", "Cache::evict_last"};
  std::vector<std::string> parts;
  if (!padding.empty())
    parts.push_back(".padding = " + padding.substr(2));
  if (op.mask >= 0)
    parts.push_back(fmt::format(".mask = t{}", op.mask));
  if (op.scope != Scope::device)
    parts.push_back(fmt::format(".scope = Scope::{}", op.scope == Scope::block ? "block" : "system"));
  if (op.cache)
    parts.push_back(fmt::format(".cache = {}", hints[op.cache]));
  return parts.empty() ? "" : fmt::format(", {{{}}}", fmt::join(parts, ", "));
}

/// The hints of a range, after its numbers.
static std::string hintsOf(const Op &op) {
  const auto &[unroll, stages, pipeline] = op.hints;
  return unroll == 1 && stages == 0 && pipeline
             ? ""
             : fmt::format(", {{.unroll = {}, .stages = {}, .pipeline = {}}}", unroll, stages, pipeline);
}

static std::string maskOf(const Op &op) { return besides(op, ""); }

/// The options of a load.
static std::string readingOf(const Op &op) {
  return op.mask < 0 && !op.cache ? paddingOf(op) : besides(op, paddingOf(op));
}

static const char *orderOf(const Op &op) {
  static const char *const orders[] = {"Order::relaxed", "Order::acquire", "Order::release", "Order::acq_rel"};
  return orders[op.which];
}

/// The subscripts of rows by their numbers.
static std::string rowsOf(const Op &op) {
  const std::string offsets = textOf(op.offsets);
  return list(textOf(op.operands[0]) + (offsets.empty() ? "" : ", ") + offsets);
}

static std::string accessText(const Op &op) {
  const std::string place = viewOf(op) + ", ", offsets = list(textOf(op.offsets)), x = textOf(op.operands);
  const std::string blocks = list(Shape(op.shape.begin() + op.index, op.shape.end()));
  switch (op.verb) {
  case Verb::load:
    return "load(" + place + offsets + ", " + blocks + readingOf(op) + ")";
  case Verb::loadRows:
    return "load(" + place + rowsOf(op) + ", " + list(Shape(op.shape.begin() + 1, op.shape.end())) + paddingOf(op) +
           ")";
  case Verb::storeRows:
    return "store(" + place + rowsOf(op) + ", " + textOf(op.operands[1]) + ")";
  case Verb::store:
    return "store(" + place + offsets + ", " + x + maskOf(op) + ")";
  case Verb::atomicLoad:
    return fmt::format("atomic_load({}{}, {}, {}{})", place, offsets, blocks, orderOf(op), maskOf(op));
  case Verb::atomicStore:
    return fmt::format("atomic_store({}{}, {}, {}{})", place, offsets, x, orderOf(op), maskOf(op));
  case Verb::atomic:
    return fmt::format("atomic_{}({}{}, {}, {}{})", atomicNames[op.axes[0]], place, offsets, x, orderOf(op),
                       maskOf(op));
  case Verb::compareExchange:
    return fmt::format("atomic_compare_exchange({}{}, {}, {}{})", place, offsets, x, orderOf(op), maskOf(op));
  default:
    return fmt::format("v{}.dim({})", op.window, op.axes[0]);
  }
}

/// The operands of a product with scales; `Scales()` for an operand without scales.
static std::string scaledOperands(const Op &op) {
  std::vector<std::string> texts;
  for (const Operand &operand : op.operands)
    texts.push_back(textOf(operand));
  if (op.which != 0)
    texts.insert(texts.begin() + (op.which == 1 ? 1 : 3), "Scales()");
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// A row of reductions() or scans() with its operand and axes filled in.
static std::string reduction(const Op &op, const Reduction &row, const char *kept) {
  std::string axes = fmt::format("{}", fmt::join(op.axes, ", ")), text;
  axes = op.axes.size() == 1 ? axes : list(axes);
  const char *const end = std::strrchr(row.text, ')');
  for (const char *c = row.text; *c; ++c)
    if (*c == '$')
      text += *++c == '0' ? textOf(op.operands[0]) : axes;
    else
      text += c == end && op.keeps ? kept : std::string(1, *c);
  return text;
}

/// Operations that split and join tiles.
static std::string moveText(const Op &op) {
  const std::string x = textOf(op.operands), begin = list(op.begin), steps = list(op.steps);
  switch (op.verb) {
  case Verb::extract:
    return fmt::format("extract({}, {}, {}, {})", x, begin, list(op.shape), steps);
  case Verb::split:
    return fmt::format("split({})[{}]", x, op.which);
  case Verb::join:
    return "join(" + x + ")";
  case Verb::interleave:
    return "interleave(" + x + ")";
  case Verb::concat:
    return fmt::format("concat({}, {})", list(x), op.axes[0]);
  case Verb::pad:
    return fmt::format("pad({}, {}, {}, {})", textOf(op.operands[0]), begin, steps, textOf(op.operands[1]));
  case Verb::insert:
    return fmt::format("insert({}, {})", x, begin);
  default:
    return fmt::format("topk({}, {}, {})[{}]", x, op.shape[op.axes[0]], op.axes[0], op.which);
  }
}

static std::string castText(const Op &op) {
  static const char *const roundings[] = {"", ", Rounding::nearest", ", Rounding::toward_zero", ", Rounding::down",
                                          ", Rounding::up"};
  const std::string x = textOf(op.operands[0]);
  return op.operands.size() > 1
             ? fmt::format("stochastic_round({}, {}, {})", x, nameOf(op.type), textOf(op.operands[1]))
             : fmt::format("cast({}, {}{})", x, nameOf(op.type), roundings[op.which]);
}

static std::string expression(const Op &op) {
  const std::string x = textOf(op.operands);
  switch (op.verb) {
  case Verb::copy:
    return x;
  case Verb::elementwise:
    return filled(elementwise()[op.which].text, op.operands);
  case Verb::cast:
    return castText(op);
  case Verb::full:
    return fmt::format("full({}, {}, {})", nameOf(op.type), list(op.shape), x);
  case Verb::constant:
    return fmt::format("constant({}, {}, {})", nameOf(op.type), list(op.shape), list(x));
  case Verb::iota:
    return fmt::format("iota({}, {})", op.shape[0], nameOf(op.type));
  case Verb::programId:
    return fmt::format("program_id({})", op.axes[0]);
  case Verb::numPrograms:
    return fmt::format("num_programs({})", op.axes[0]);
  case Verb::reshape:
  case Verb::broadcast:
    return fmt::format("{}({}, {})", op.verb == Verb::reshape ? "reshape" : "broadcast", x, list(op.shape));
  case Verb::transpose:
    return fmt::format("transpose({}, {{{}}})", x, fmt::join(op.axes, ", "));
  case Verb::unsqueeze:
    return fmt::format("unsqueeze({}, {})", x, op.axes[0]);
  case Verb::roll:
    return fmt::format("roll({}, {}, {})", x, op.which, op.axes[0]);
  case Verb::bitcast:
    return fmt::format("bitcast({}, {})", x, nameOf(op.type));
  case Verb::pack:
    return fmt::format("pack({}, {})", x, op.axes[0]);
  case Verb::unpack:
    return fmt::format("unpack({}, {}, {})", x, nameOf(op.type), op.axes[0]);
  case Verb::extract:
  case Verb::split:
  case Verb::join:
  case Verb::interleave:
  case Verb::concat:
  case Verb::pad:
  case Verb::insert:
  case Verb::topk:
    return moveText(op);
  case Verb::softmax:
    return fmt::format("softmax({}, {})", x, op.axes[0]);
  case Verb::reduce:
    return reduction(op, reductions()[op.which], ", keep)");
  case Verb::gather:
    return fmt::format("gather({}, {})", x, op.axes[0]);
  case Verb::histogram:
    return fmt::format("histogram({}, {}{})", x, op.shape[0], op.mask < 0 ? "" : fmt::format(", t{}", op.mask));
  case Verb::scan:
    return reduction(op, scans()[op.which], ", true)");
  case Verb::dot:
    return op.precision == Precision::ieee
               ? "dot(" + x + ")"
               : fmt::format("dot({}, Precision::{})", x, precisionNames[static_cast<size_t>(op.precision)]);
  case Verb::dotScaled:
    return "dot_scaled(" + scaledOperands(op) + ")";
  case Verb::randomBits:
    return fmt::format("random_words({})[{}]", x, op.which);
  case Verb::random:
    return "random(" + x + ")";
  case Verb::randomNormal:
    return "random_normal(" + x + ")";
  default:
    return accessText(op);
  }
}

static void write(std::string &text, const std::vector<Op> &ops, int depth) {
  const std::string indent(2 * depth, ' ');
  for (const Op &op : ops) {
    switch (op.verb) {
    case Verb::store:
    case Verb::storeRows:
    case Verb::atomicStore:
      text += indent + accessText(op) + ";\n";
      break;
    case Verb::deviceAssert:
      text += indent + fmt::format("device_assert({}, \"as drawn\");\n", textOf(op.operands[0]));
      break;
    case Verb::assume:
      text += indent + fmt::format("assume(({0} % {1} == 0) & ({0} >= {2}) & ({0} <= {3}));\n", textOf(op.operands[0]),
                                   op.which, op.begin[0], op.begin[1]);
      break;
    case Verb::assign:
      text += indent + fmt::format("t{} = {};\n", op.result, textOf(op.operands[0]));
      break;
    case Verb::loop:
      text += indent + fmt::format("for (Tile t{} : range({}{})) {{\n", op.result, textOf(op.operands), hintsOf(op));
      write(text, op.body, depth + 1);
      text += indent + "}\n";
      break;
    case Verb::repeat:
      text += indent + fmt::format("Tile rounds{} = 0;\n", op.result);
      text +=
          indent + fmt::format("for (Tile t{0} : repeat_while([&] {{ return {1}rounds{0} < {2}; }})) {{\n", op.result,
                               op.operands.size() > 1 ? textOf(op.operands[1]) + " & " : "", textOf(op.operands[0]));
      text += indent + fmt::format("  rounds{0} = rounds{0} + 1;\n", op.result);
      write(text, op.body, depth + 1);
      text += indent + "}\n";
      break;
    case Verb::leave:
      text += indent + fmt::format("{}({});\n", leaveNames[op.which], textOf(op.operands[0]));
      break;
    case Verb::if_:
      text += indent + fmt::format("if_({}, [&] {{\n", textOf(op.operands[0]));
      write(text, op.body, depth + 1);
      if (!op.otherwise.empty()) {
        text += indent + "}, [&] {\n";
        write(text, op.otherwise, depth + 1);
      }
      text += indent + "});\n";
      break;
    default:
      text += indent + fmt::format("Tile t{} = {}; // {} {}\n", op.result, expression(op), nameOf(op.type),
                                   kiln::textOf(op.shape));
    }
  }
}

/// The kernel's arguments for kilnc; static extents are numbers.
static std::string argumentsOf(const Program &program) {
  std::vector<std::string> views, arguments;
  for (const Window &window : program.windows) {
    std::vector<std::string> extents(window.extents.size(), "?");
    for (const int axis : window.asked)
      extents[axis] = std::to_string(window.extents[axis]);
    views.push_back(fmt::format("{}[{}]", nameOf(program.buffers[window.buffer].type), fmt::join(extents, "x")));
  }
  for (const auto &[kind, begin, count] : viewParameters(program)) {
    const auto first = views.begin() + begin;
    if (kind == Kernel::Parameter::Kind::list)
      arguments.push_back(fmt::format("[{}]", fmt::join(first, first + count, ", ")));
    else
      arguments.push_back(count == 0 ? "none" : *first);
  }
  arguments.insert(arguments.end(), program.scalars.size(), "i64");
  return fmt::format("{}", fmt::join(arguments, ", "));
}

namespace {
/// The parameters of a kernel as C++.
struct Parameters {
  std::vector<std::string> declarations, names;
  std::string views; // statements that name the views of optional views and lists
};
} // namespace

static Parameters parametersOf(const Program &program) {
  Parameters result;
  const auto add = [&](const char *type, const std::string &name, const std::string &about = "") {
    result.declarations.push_back(fmt::format("{} {}", type, name));
    result.names.push_back('"' + name + (about.empty() ? "" : " " + about) + '"');
  };
  for (const Parameter &parameter : viewParameters(program)) {
    const auto &[kind, begin, count] = parameter;
    const std::string about = aboutOf(program, parameter);
    const bool isList = kind == Kernel::Parameter::Kind::list;
    if (kind == Kernel::Parameter::Kind::view) {
      add("View", fmt::format("v{}", begin), about);
      continue;
    }
    const std::string name = fmt::format("p{}", result.names.size());
    add(isList ? "std::vector<View>" : "std::optional<View>", name, about);
    for (int i = 0; i < count; ++i)
      result.views += isList ? fmt::format("  View v{} = {}[{}];\n", begin + i, name, i)
                             : fmt::format("  View v{} = *{};\n", begin, name);
  }
  for (size_t i = 0; i < program.scalars.size(); ++i)
    add("Tile", fmt::format("t{}", i));
  result.declarations.emplace_back("Config");
  return result;
}

std::string listing(const Program &program) {
  std::string text;
  for (size_t i = 0; i < program.windows.size(); ++i) {
    const Window &window = program.windows[i];
    const Buffer &buffer = program.buffers[window.buffer];
    static const char *const fills[] = {"small whole numbers", "real numbers", "any bits", "zeros"};
    text += fmt::format("// v{}: {} {}, strides {}, element {} of the {} of buffer {} ({})\n", i, nameOf(buffer.type),
                        list(window.extents), list(window.strides), window.offset, buffer.elements, window.buffer,
                        fills[static_cast<int>(buffer.fill)]);
  }
  for (size_t i = 0; i < program.scalars.size(); ++i)
    text += fmt::format("// t{} = {}\n", i, program.scalars[i]);
  const auto &[declarations, names, views] = parametersOf(program);
  text += fmt::format("// grid of {}; kilnc FILE --args='{}'\n", fmt::join(program.axes, "x"), argumentsOf(program));
  text += fmt::format("#include \"dialect/dsl/Kernel.h\"\nusing namespace kiln;\nstruct Config {{\n  int warps = {}, "
                      "stages = {};\n}};\n"
                      "void program({}) {{\n{}",
                      program.warps, program.stages, fmt::join(declarations, ", "), views);
  for (size_t i = 0; i < program.windows.size(); ++i)
    for (const int axis : program.windows[i].asked)
      text += fmt::format("  v{}.extent({});\n", i, axis);
  write(text, program.ops, 1);
  return text + fmt::format("}}\nconst Kernel programKernel = kernel(\"program\", program, {{{}}}, {{field(\"warps\", "
                            "&Config::warps), field(\"stages\", &Config::stages)}});\n",
                            fmt::join(names, ", "));
}

} // namespace kiln::fuzz

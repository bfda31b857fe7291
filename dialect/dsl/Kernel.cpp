// Config text, `bm=128,bn=64`, to and from a config struct by the fields that a kernel registered; and the checks of a
// registration.

#include "dialect/dsl/Nearest.h"
#include "dialect/dsl/Registrations.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace kiln {

std::string printField(int64_t value) { return std::to_string(value); }

template <class T> static std::string shortest(T value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string printField(double value) { return shortest(value); }
std::string printField(float value) { return shortest(value); }

/// A text for a message, cut off after `most` characters.
static std::string shown(const std::string &text) {
  constexpr size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most) + "…";
}

int64_t parseInteger(const std::string &field, const std::string &text, int64_t least, int64_t most) {
  if (text == "true" || text == "false")
    return text == "true";
  errno = 0;
  char *end = nullptr;
  int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0)
    throw Error("expected an integer for '" + field + "', but got '" + shown(text) + "'");
  if (errno == ERANGE || value < least || value > most)
    throw Error("expected an integer that fits '" + field + "', but got '" + shown(text) + "'");
  return value;
}

template <class T>
static T parseAs(const std::string &field, const std::string &text, T (*convert)(const char *text, char **end)) {
  errno = 0;
  char *end = nullptr;
  const T value = convert(text.c_str(), &end);
  if (text.empty() || *end != 0)
    throw Error("expected a number for '" + field + "', but got '" + shown(text) + "'");
  if (std::isinf(value) && errno == ERANGE)
    throw Error("expected a number that fits '" + field + "', but got '" + shown(text) + "'");
  return value;
}
void parseReal(const std::string &field, const std::string &text, double &value) {
  value = parseAs(field, text, std::strtod);
}
void parseReal(const std::string &field, const std::string &text, float &value) {
  value = parseAs(field, text, std::strtof);
}

/// Former names of fields and of their values, and Triton's names, in lower case, each with its name here.
static constexpr std::pair<llvm::StringRef, llvm::StringRef> namesElsewhere[] = {
    {"apart", "separate_residual"},
    {"band", "group_m"},
    {"bare", "eps_is_zero"},
    {"block_k", "bk"},
    {"block_m", "bm"},
    {"block_n", "bn"},
    {"block_size", "block"},
    {"block_size_k", "bk"},
    {"block_size_m", "bm"},
    {"block_size_n", "bn"},
    {"causal", "is_causal"},
    {"copies", "store_copy"},
    {"counted", "store_correct"},
    {"decay", "weight_decay"},
    {"drop", "dropout"},
    {"epsilon", "eps"},
    {"group_size_m", "group_m"},
    {"ignore", "ignore_index"},
    {"is_causal", "causal"},
    {"keep", "store_bias_grad"},
    {"keep", "store_preact"},
    {"longest", "longest_first"},
    {"num_stages", "stages"},
    {"num_warps", "warps"},
    {"outside", "eps_outside_sqrt"},
    {"parts", "kv_splits"},
    {"parts", "unroll"},
    {"programs", "min_ctas_per_sm"},
    {"ranged", "has_bounds"},
    {"rate", "lr"},
    {"rows", "decode"},
    {"seed001", "nonzero"},
    {"shifted", "unequal_lengths"},
    {"side", "k_unroll"},
    {"sums", "row_sum_lanes"},
    {"sums", "sum_group"},
};

/// A question for the name that an unknown `name` may mean, by the table or by its spelling; empty without one.
static std::string hintFor(const std::string &name, const std::vector<std::string> &known) {
  std::string hint = didYouMean(name, known);
  for (const auto &[elsewhere, here] : namesElsewhere) {
    if (elsewhere != llvm::StringRef(name).lower())
      continue;
    if (llvm::is_contained(known, here))
      return ("; did you mean '" + here + "'?").str();
    if (elsewhere.starts_with("num_"))
      hint = ("; without a field '" + here + "' the compiler chooses").str();
  }
  return hint;
}

size_t parseChoice(const std::string &field, const std::string &text, const std::vector<std::string> &choices) {
  const auto at = llvm::find(choices, text);
  if (at == choices.end())
    throw Error("expected '" + field + "' to be one of " + llvm::join(choices, ", ") + ", but got '" + shown(text) +
                "'" + hintFor(text, choices));
  return static_cast<size_t>(at - choices.begin());
}

Precision precisionNamed(const std::string &text) {
  return static_cast<Precision>(parseChoice("precision", text, precisionNames));
}

std::string calledArgument(const std::string &name, size_t index) {
  return name.empty() ? "argument " + std::to_string(index) : "'" + name + "'";
}

namespace {
/// Words for error messages: the owner of the fields, the text that sets them, and a field in singular and plural.
struct FieldWords {
  std::string owner, text, one, several;
};
} // namespace

/// The error for an unknown field: its name, the name that may be meant, and all names.
static Error unknownField(const FieldWords &words, const std::vector<Field> &fields, const std::string &name) {
  std::vector<std::string> names;
  for (const Field &field : fields)
    names.push_back(field.name);
  const std::string wrong = words.owner + " has no " + words.one + " '" + name + "'";
  if (fields.empty())
    return Error(wrong + ", because it has no " + words.several);
  return Error(wrong + hintFor(name, names) + " (" + words.several + ": " + llvm::join(names, ", ") + ")");
}

static void parseFields(const FieldWords &words, const std::vector<Field> &fields, const std::string &text,
                        void *values) {
  llvm::SmallVector<llvm::StringRef> items;
  if (!text.empty())
    llvm::StringRef(text).split(items, ',');
  llvm::SmallVector<llvm::StringRef> seen;
  const std::string where = " in the " + words.text + " of " + words.owner;
  for (llvm::StringRef item : items) {
    auto [name, value] = item.split('=');
    name = name.trim();
    if (!item.contains('=')) {
      const auto [before, after] = item.split(':');
      throw Error("expected 'name=value'" + where + ", but got '" + shown(item.str()) + "'" +
                  (after.empty() ? "" : "; did you mean '" + shown((before + "=" + after).str()) + "'?"));
    }
    auto at = std::find_if(fields.begin(), fields.end(), [&](const Field &f) { return name == f.name; });
    if (at == fields.end())
      throw unknownField(words, fields, shown(name.str()));
    if (llvm::is_contained(seen, name))
      throw Error("expected '" + name.str() + "' once" + where + ", but got '" + shown(text) + "'");
    seen.push_back(name);
    at->parse(values, value.trim().str());
  }
}

void parseConfig(const std::string &kernel, const std::vector<Field> &fields, const std::string &text, void *config) {
  parseFields({"kernel '" + kernel + "'", "config", "config field", "config fields"}, fields, text, config);
}

void parseOptions(const std::string &op, const std::vector<Field> &fields, const std::string &text, void *options) {
  parseFields({"operator '" + op + "'", "options", "option", "options"}, fields, text, options);
}

// --- Registration ----------------------------------------------------------------------------------------------------

static thread_local Registrations *activeRegistrations = nullptr;

Registrations::Registrations() : outer(std::exchange(activeRegistrations, this)) {}
Registrations::~Registrations() { activeRegistrations = outer; }

/// Whether a name is valid as a function's name, in keys, in flags and in file names.
static bool isIdentifier(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

namespace {
/// The errors of one registration.
struct Registration {
  const Kernel &kernel;

  Error expected(const std::string &text) const {
    return Error(kernel.loc.file + (":" + std::to_string(kernel.loc.line)) + ": error: expected " + text);
  }
  /// Throws unless `name` is an identifier not in `seen`, to which it is added. `things`: the named things, in
  /// messages.
  void checkName(const std::string &name, const std::string &things, std::vector<std::string> &seen) const {
    const std::string of = things + " of kernel '" + kernel.name + "'";
    if (!isIdentifier(name))
      throw expected("names of letters, digits and '_' for the " + of + ", but got '" + name + "'");
    if (llvm::is_contained(seen, name))
      throw expected("different names for the " + of + ", but two are called '" + name + "'");
    seen.push_back(name);
  }
};
} // namespace

/// Whether an argument's text says that its extents may be others than its names.
static bool mayDiffer(llvm::StringRef about) { return about.contains("transposed") || about.contains("broadcast"); }

std::vector<Kernel::NamedExtent> findNamedExtents(const std::vector<Kernel::Parameter> &parameters) {
  llvm::MapVector<llvm::StringRef, Kernel::NamedExtent> found;
  for (const auto &[argument, parameter] : llvm::enumerate(parameters)) {
    llvm::StringRef shape = parameter.about;
    if (!parameter.isView() || parameter.kind == Kernel::Parameter::Kind::list ||
        llvm::StringRef(parameter.name).contains('[') || mayDiffer(shape) || !shape.consume_front("("))
      continue;
    llvm::SmallVector<llvm::StringRef> extents;
    shape.take_until([](char c) { return c == ')'; }).split(extents, ',');
    for (const auto &[axis, extent] : llvm::enumerate(extents))
      if (isIdentifier(extent.trim().str()))
        found[extent.trim()].emplace_back(static_cast<int>(argument), static_cast<int>(axis));
  }
  std::vector<Kernel::NamedExtent> several;
  for (auto &[name, extents] : found)
    if (extents.size() > 1)
      several.push_back(std::move(extents));
  return several;
}

void detail::registerKernel(Kernel &kernel, const std::vector<std::string> &arguments, const void *config) {
  const Registration line{kernel};
  if (!isIdentifier(kernel.name))
    throw line.expected("a kernel's name of letters, digits and '_', but got '" + kernel.name + "'");
  std::vector<std::string> seen;
  for (auto [parameter, text] : llvm::zip(kernel.parameters, arguments)) {
    auto [name, about] = llvm::StringRef(text).split(' ');
    line.checkName(name.str(), "arguments", seen);
    parameter.name = name.str();
    parameter.about = about.trim().str();
  }
  kernel.namedExtents = findNamedExtents(kernel.parameters);
  seen.clear();
  for (const Field &field : kernel.fields) {
    line.checkName(field.name, "config fields", seen);
    for (const auto &[theirs, ours] : {std::pair("num_warps", "warps"), {"num_stages", "stages"}}) // of Triton
      if (field.name == theirs)
        throw line.expected(std::string("the field '") + ours + "' of kernel '" + kernel.name +
                            "', a name that the compiler knows, but got '" + theirs + "'");
    if (field.of != config)
      throw line.expected("the fields of kernel '" + kernel.name + "' to be of the config struct that it takes, but '" +
                          field.name + "' is not");
  }
  if (activeRegistrations)
    activeRegistrations->kernels.push_back(kernel);
}

} // namespace kiln

// Parses the texts of registrations, and checks plans' operands by them.

#include "kernels/operands.h"
#include "dialect/dsl/Kernel.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <regex>
#include <unordered_map>

namespace kiln {

//===-- Extents -------------------------------------------------------------------------------------------------===//

const int64_t *NamedExtents::find(std::string_view name) const {
  const auto at = std::ranges::find(extents, name, &std::pair<std::string_view, int64_t>::first);
  return at == extents.end() ? nullptr : &at->second;
}

int64_t NamedExtents::operator[](std::string_view name) const {
  if (const int64_t *extent = find(name))
    return *extent;
  throw Error("expected an extent for '" + std::string(name) + "', but got none");
}

static bool isNumber(std::string_view term) { return term[0] >= '0' && term[0] <= '9'; }

/// The value of `N`, `16` or `U + 1`, or nothing if a name has no number.
static std::optional<int64_t> findExtent(std::string_view extent, const NamedExtents &known) {
  int64_t value = 0;
  for (size_t begin = 0, end = 0; end < extent.size(); begin = end + 3) { // ` + ` and ` / ` are between terms
    end = std::min(extent.find(' ', begin), extent.size());
    const std::string_view term = extent.substr(begin, end - begin);
    int64_t number = 0;
    if (isNumber(term))
      std::from_chars(term.data(), term.data() + term.size(), number);
    else if (const int64_t *found = known.find(term))
      number = *found;
    else
      return {};
    const bool divides = begin > 0 && extent[begin - 2] == '/';
    if (divides && number == 0)
      return {};
    value = divides ? value / number : value + number;
  }
  return value;
}

Shape ArgumentForm::shape(const NamedExtents &known) const {
  Shape shape;
  for (const std::string &extent : extents) {
    const std::optional<int64_t> value = findExtent(extent, known);
    if (!value)
      throw Error("expected extents for '" + name + "', but got none for '" + extent + "'");
    shape.push_back(*value);
  }
  return shape;
}

//===-- Registrations -------------------------------------------------------------------------------------------===//

/// The parts of `text` between separators.
static std::vector<std::string> split(const std::string &text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end = 0; end < text.size(); begin = end + separator.size()) {
    end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

/// Parses `f32 or i8`. `forms` are those of the arguments before.
static bool parseTypes(const std::string &text, const std::vector<ArgumentForm> &forms, ArgumentForm &form) {
  if (text == "any")
    return true;
  if (text.starts_with("as ")) {
    const auto other = std::ranges::find(forms, text.substr(3), &ArgumentForm::name);
    if (other == forms.end())
      return false;
    form.types = other->types;
    form.sameAs = std::ranges::count_if(forms.begin(), other, &ArgumentForm::isView);
    return true;
  }
  for (const std::string &word : split(text.empty() ? "float" : text, " or ")) {
    const std::optional<Type> type = findType(&TypeInfo::spelling, word);
    if (!type && word != "float")
      return false;
    form.types.insert(form.types.end(), type ? std::initializer_list{*type} : std::initializer_list{f32, bf16, f16});
  }
  return true;
}

std::vector<ArgumentForm> argumentForms(const Kernel &kernel) {
  static const std::string extent = "\\w+(?: [+/] \\w+)*";
  static const std::regex whole("(?:\\((" + extent + "(?:, " + extent + ")*)\\) ?)?([^,]*)(?:,.*)?");
  std::vector<ArgumentForm> forms;
  for (const Kernel::Parameter &parameter : kernel.parameters) {
    ArgumentForm form;
    form.name = parameter.name;
    std::smatch parts;
    const bool isParsed = std::regex_match(parameter.about, parts, whole) && parts[1].matched == parameter.isView();
    form.extents = isParsed ? split(parts[1], ", ") : std::vector<std::string>();
    if (parameter.isView() && !(isParsed && parseTypes(parts[2], forms, form)))
      throw Error("kernel '" + kernel.name + "': expected argument '" + parameter.name +
                  "' as `NAME (EXTENTS) TYPES, prose`, but got '" + parameter.name + " " + parameter.about + "'");
    if (!parameter.isView() && !parseTypes(parts[2], forms, form))
      form.types.clear(); // the text of a scalar may be prose alone
    forms.push_back(std::move(form));
  }
  return forms;
}

Kernel withoutNamedExtents(Kernel kernel) {
  kernel.namedExtents.clear();
  return kernel;
}

/// The forms of a kernel's views, parsed once in each thread, so that a plan takes no lock.
static const std::vector<ArgumentForm> &viewForms(const Kernel &kernel) {
  thread_local std::unordered_map<std::shared_ptr<const char>, std::vector<ArgumentForm>> known; // keeps identities
  const auto at = known.find(kernel.identity);
  if (at != known.end())
    return at->second;
  std::vector<ArgumentForm> forms = argumentForms(kernel);
  std::erase_if(forms, [](const ArgumentForm &form) { return !form.isView(); });
  return known.emplace(kernel.identity, std::move(forms)).first->second;
}

//===-- Checks --------------------------------------------------------------------------------------------------===//

/// Throws the error of any of the checks.
[[noreturn]] static void fail(const char *plan, const std::string &operand, const std::string &expected,
                              const std::string &got) {
  throw Error("'" + std::string(plan) + "': expected '" + operand + "' " + expected + ", but got " + got);
}

void expectShape(const char *plan, const char *operand, const TensorRef &tensor, const Shape &extents) {
  if (tensor.extents != extents)
    fail(plan, operand, "of shape " + textOf(extents), textOf(tensor.extents));
}

static size_t rankWithin(const Operand &operand, const ArgumentForm &form) {
  return form.extents.size() - operand.isOnePart;
}

/// The form of dimension `axis` of the operand, as it is stored.
static const std::string &nameExtent(const Operand &operand, const ArgumentForm &form, size_t axis) {
  const size_t rank = rankWithin(operand, form);
  const bool isSwapped = operand.isTransposed && axis + 2 >= rank;
  return form.extents[(isSwapped ? 2 * rank - 3 - axis : axis) + operand.isOnePart];
}

/// Gives names without a number the operand's extents.
static void bind(const Operand &operand, const ArgumentForm &form, NamedExtents &known) {
  if (!operand.tensor || operand.tensor->extents.size() != rankWithin(operand, form))
    return;
  for (size_t axis = 0; axis < operand.tensor->extents.size(); ++axis)
    if (const std::string &extent = nameExtent(operand, form, axis);
        !isNumber(extent) && extent.find(' ') == std::string::npos && !known.find(extent))
      known.set(extent, operand.tensor->extents[axis]);
}

static void expectFit(const char *plan, const Operand &operand, const ArgumentForm &form, const NamedExtents &known) {
  const Shape &got = operand.tensor->extents;
  bool fits = got.size() == rankWithin(operand, form);
  for (size_t axis = 0; fits && axis < got.size(); ++axis) {
    const bool isBroadcast = axis < operand.broadcast && got[axis] == 1;
    fits = isBroadcast || findExtent(nameExtent(operand, form, axis), known).value_or(got[axis]) == got[axis];
  }
  if (fits)
    return;
  std::string expected; // `2x12xTkx64`: numbers, and names without a number
  for (size_t axis = 0; axis < rankWithin(operand, form); ++axis) {
    const std::string &extent = nameExtent(operand, form, axis);
    const std::optional<int64_t> value = findExtent(extent, known);
    expected += (axis ? "x" : "") + (value ? std::to_string(*value) : extent);
  }
  fail(plan, form.name, "of shape " + expected, textOf(got));
}

static void expectType(const char *plan, const ArgumentForm &form, Type got, std::span<const Type> types) {
  if (types.empty() || std::ranges::count(types, got))
    return;
  std::string names;
  for (const Type type : types)
    names += (names.empty() ? "" : " or ") + std::string(nameOf(type));
  fail(plan, form.name, "of type " + names, nameOf(got));
}

NamedExtents checkOperands(const Kernel &kernel, std::span<const Operand> operands, const char *plan) {
  const std::vector<ArgumentForm> &forms = viewForms(kernel);
  if (operands.size() > forms.size())
    throw Error("kernel '" + kernel.name + "': expected at most " + std::to_string(forms.size()) +
                " operands, but got " + std::to_string(operands.size()));
  NamedExtents known;
  for (size_t i = 0; i < operands.size(); ++i)
    bind(operands[i], forms[i], known);
  const char *const name = plan ? plan : kernel.name.c_str();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].tensor)
      continue;
    expectFit(name, operands[i], forms[i], known);
    const TensorRef *other = forms[i].sameAs ? operands[*forms[i].sameAs].tensor : nullptr;
    expectType(name, forms[i], operands[i].tensor->type,
               other ? std::span(&other->type, 1) : std::span(forms[i].types));
  }
  return known;
}

} // namespace kiln

// Splits --args, and finds parameters by name.

#include "tools/kilnc/Arguments.h"

#include "dialect/dsl/Nearest.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

namespace kiln::tools {

static std::vector<std::string> namesOf(const Kernel &kernel) {
  std::vector<std::string> names;
  for (const Kernel::Parameter &parameter : kernel.parameters)
    if (!parameter.name.empty())
      names.push_back(parameter.name);
  return names;
}

std::string parameterNames(const Kernel &kernel) {
  const std::vector<std::string> names = namesOf(kernel);
  return names.empty() ? "" : " (" + llvm::join(names, ", ") + ")";
}

/// The parameter of a name.
static size_t parameterNamed(const Kernel &kernel, const std::string &name) {
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    if (kernel.parameters[i].name == name)
      return i;
  const std::vector<std::string> names = namesOf(kernel);
  if (names.empty())
    throw Error(fmt::format("expected --args without names, because kernel '{}' is registered without names of its "
                            "parameters, but got '{}='",
                            kernel.name, name));
  throw Error(fmt::format("expected --args to name parameters of kernel '{}'{}, but got '{}'{}", kernel.name,
                          parameterNames(kernel), name, didYouMean(name, names)));
}

/// Throws Error for extents with a comma between them, `f32[13,300]`, which splitting cuts into parts.
static void checkExtents(llvm::ArrayRef<llvm::StringRef> parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].contains('[') || parts[i].contains(']'))
      continue;
    const llvm::StringRef head = parts[i].substr(parts[i].find('=') + 1).trim();
    std::string given = head.str(), meant = head.str();
    for (size_t j = i + 1; j < parts.size() && !parts[j].contains('['); ++j) {
      given += "," + parts[j].str();
      meant += "x" + parts[j].trim().str();
      if (parts[j].contains(']'))
        throw Error(
            fmt::format("expected 'x' between extents in --args, but got '{}'; did you mean '{}'?", given, meant));
    }
  }
}

/// The text up to the end of a list, `[…]` or `name=[…]`; nothing unless it begins with one.
static size_t endOfList(llvm::StringRef text) {
  const size_t open = text.find('[');
  llvm::StringRef before = text.substr(0, open).trim();
  if (open == llvm::StringRef::npos || !(before.empty() || before.ends_with("=")))
    return 0;
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += (text[at] == '[') - (text[at] == ']');
    if (depth == 0)
      return at + 1;
  }
  return 0;
}

/// The parts between commas; a list is one part.
static llvm::SmallVector<llvm::StringRef> splitParts(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (text.trim().empty())
    return parts;
  for (size_t end = 0; end != llvm::StringRef::npos; text = text.substr(end + 1)) {
    end = text.find(',', endOfList(text));
    parts.push_back(text.substr(0, end));
  }
  return parts;
}

std::vector<std::optional<std::string>> argumentParts(const Kernel &kernel, const std::string &text) {
  const llvm::SmallVector<llvm::StringRef> parts = splitParts(text);
  checkExtents(parts);
  std::vector<std::optional<std::string>> found;
  bool named = false;
  for (const llvm::StringRef part : parts) {
    auto [name, value] = part.split('=');
    name = name.trim();
    const bool isName = part.contains('=') && llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (!isName) {
      if (named)
        throw Error(fmt::format("expected a name for every argument after the first that has one in --args, but got "
                                "'{}'",
                                part.trim().str()));
      found.emplace_back(part.trim().str());
      continue;
    }
    if (found.size() > kernel.parameters.size())
      throw Error(fmt::format("kernel '{}': expected {} arguments{} in --args, but got {}", kernel.name,
                              kernel.parameters.size(), parameterNames(kernel), parts.size()));
    named = true;
    found.resize(kernel.parameters.size());
    std::optional<std::string> &place = found[parameterNamed(kernel, name.str())];
    if (place)
      throw Error(fmt::format("kernel '{}': expected '{}' once in --args, but got it twice", kernel.name, name.str()));
    place = value.trim().str();
  }
  return found;
}

/// Appends the views of a part for an optional view or a list; their number.
static size_t appendViews(const Kernel &kernel, size_t index, const std::optional<std::string> &part,
                          std::vector<std::string> &views) {
  llvm::StringRef text = "none";
  if (part)
    text = *part;
  if (kernel.parameters[index].kind == Kernel::Parameter::Kind::optional) {
    if (text == "none")
      return 0;
    views.push_back(text.str());
    return 1;
  }
  if (endOfList(text) != text.size() || !text.consume_front("[") || !text.consume_back("]"))
    throw Error(fmt::format("kernel '{}': expected {} in --args to be a list of views, such as [f32[8x8], f32[4x4]], "
                            "but got {}",
                            kernel.name, kernel.called(index), part ? "'" + *part + "'" : "none"));
  const llvm::SmallVector<llvm::StringRef> list = splitParts(text);
  for (const llvm::StringRef view : list)
    views.push_back(view.trim().str());
  return list.size();
}

ExpandedText expandArguments(const Kernel &kernel, const std::string &text) {
  if (!kernel.isVariadic())
    return {&kernel, text};
  const std::vector<std::optional<std::string>> parts = argumentParts(kernel, text);
  if (parts.size() != kernel.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments{} in --args, with 'none' for a view that is absent, "
                            "but got {}",
                            kernel.name, kernel.parameters.size(), parameterNames(kernel), parts.size()));
  std::vector<std::string> each;
  std::vector<size_t> counts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (kernel.parameters[i].isVariadic())
      counts.push_back(appendViews(kernel, i, parts[i], each));
    else if (parts[i])
      each.push_back(*parts[i]);
    else
      throw Error(fmt::format("kernel '{}': expected a {} for {} in --args, but got none", kernel.name,
                              kernel.parameters[i].isView() ? "view" : "scalar", kernel.called(i)));
  }
  return {&expanded(kernel, counts), llvm::join(each, ", ")};
}

} // namespace kiln::tools

// Splits --args, and finds parameters by name.

#include "tools/kilnc/ArgumentParts.h"

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

std::vector<std::optional<std::string>> argumentParts(const Kernel &kernel, const std::string &text) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (!llvm::StringRef(text).trim().empty())
    llvm::StringRef(text).split(parts, ',');
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

} // namespace kiln::tools

// Evaluates products and quotients of extents and fields.

#include "tools/kilnc/Expression.h"

#include "dialect/dsl/Nearest.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

namespace kiln::tools {

/// The names that an expression may use. Fields come last: they win over a scalar of their name.
static std::map<std::string, int64_t> namesOf(const Kernel &kernel, const std::vector<Arg> &args,
                                              const std::string &config) {
  std::map<std::string, int64_t> names;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string name = kernel.parameters[i].name.empty() ? std::to_string(i) : kernel.parameters[i].name;
    if (args[i].kind == Arg::Kind::scalar && !isFloat(args[i].scalarType))
      names[name] = args[i].integer;
    if (args[i].kind != Arg::Kind::scalar)
      for (size_t d = 0; d < args[i].ref.extents.size(); ++d)
        names[fmt::format("{}.{}", name, d)] = args[i].ref.extents[d];
  }
  const std::string text = kernel.configText(config);
  llvm::SmallVector<llvm::StringRef> fields;
  llvm::StringRef(text).split(fields, ',', -1, false);
  for (const llvm::StringRef field : fields)
    if (int64_t value; !field.split('=').second.getAsInteger(10, value))
      names[field.split('=').first.str()] = value;
  return names;
}

static int64_t evaluate(const std::string &flag, llvm::StringRef text, const Kernel &kernel,
                        const std::map<std::string, int64_t> &names) {
  const auto wrong = [&](const std::string &expected, llvm::StringRef got) {
    return Error(fmt::format("kernel '{}': expected {} in {}, but got '{}'", kernel.name, expected, flag, got.str()));
  };
  const auto operand = [&](llvm::StringRef word) {
    int64_t value = 0;
    if (!word.getAsInteger(10, value))
      return value;
    if (const auto found = names.find(word.str()); found != names.end())
      return found->second;
    std::vector<std::string> known;
    for (const auto &[name, _] : names)
      known.push_back(name);
    throw Error(wrong(fmt::format("a number or one of {}", fmt::join(known, ", ")), word).what() +
                didYouMean(word.str(), known));
  };
  size_t at = text.find_first_of("*/");
  int64_t value = operand(text.substr(0, at).trim());
  while (at != llvm::StringRef::npos) {
    const size_t next = text.find_first_of("*/", at + 1);
    const int64_t by = operand(text.slice(at + 1, next).trim());
    if (text[at] == '*' && llvm::MulOverflow(value, by, value))
      throw wrong("a product below 2^63", text);
    if (text[at] == '/' && by <= 0)
      throw wrong("a divisor above 0", text);
    if (text[at] == '/')
      value = cdiv(value, by);
    at = next;
  }
  if (value < 0)
    throw wrong("a number from 0", text);
  return value;
}

int64_t evaluate(const std::string &flag, const std::string &text, const Kernel &kernel, const std::vector<Arg> &args,
                 const std::string &config) {
  return evaluate(flag, llvm::StringRef(text).trim(), kernel, namesOf(kernel, args, config));
}

Grid evaluateGrid(const std::string &text, const Kernel &kernel, const std::vector<Arg> &args,
                  const std::string &config) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ',');
  Grid grid;
  if (parts.size() > grid.size())
    throw Error(
        fmt::format("expected --grid to be one to three numbers of programs from 0, such as 8,4, but got '{}'", text));
  const std::map<std::string, int64_t> names = namesOf(kernel, args, config);
  for (size_t i = 0; i < parts.size(); ++i)
    grid[i] = evaluate("--grid", parts[i].trim(), kernel, names);
  return grid;
}

} // namespace kiln::tools

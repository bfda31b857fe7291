// Evaluates products and quotients of extents and fields; reads --sweep and replaces its names.

#include "tools/kilnc/Expression.h"

#include "dialect/dsl/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
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

// --- Sweeps ---------------------------------------------------------------------------------------------------------

using llvm::StringRef;

/// The most sizes of a sweep.
static constexpr size_t mostSizes = 1000;

static Error wrong(const std::string &expected, StringRef got) {
  return Error(fmt::format("expected {} in --sweep, but got '{}'", expected, got.str()));
}

static bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

static int64_t sizeOf(StringRef text) {
  int64_t size = 0;
  if (text.trim().getAsInteger(10, size) || size < 1)
    throw wrong("sizes that are numbers from 1", text.trim());
  return size;
}

/// `256:4096:*2` or `128:1024:+128`.
static std::vector<int64_t> parseRange(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ':');
  StringRef step = parts.size() == 3 ? parts[2].trim() : "";
  const bool multiplies = step.consume_front("*");
  if (!multiplies && !step.consume_front("+"))
    throw wrong("a range such as 256:4096:*2 or 128:1024:+128", text);
  const int64_t first = sizeOf(parts[0]), last = sizeOf(parts[1]), by = sizeOf(step);
  if (multiplies && by < 2)
    throw wrong("a factor of at least 2", parts[2].trim());
  std::vector<int64_t> sizes;
  for (int64_t size = first; size <= last && sizes.size() <= mostSizes;) {
    sizes.push_back(size);
    if (multiplies ? llvm::MulOverflow(size, by, size) : llvm::AddOverflow(size, by, size))
      break;
  }
  if (sizes.empty())
    throw wrong("a range whose first size is not above its last", text);
  return sizes;
}

Sweep Sweep::parse(const std::string &text) {
  if (StringRef(text).trim().empty())
    return {{}, {0}};
  Sweep sweep;
  const auto [left, right] = StringRef(text).split('=');
  llvm::SmallVector<StringRef> parts;
  left.split(parts, ',');
  for (const StringRef part : parts) {
    const StringRef name = part.trim();
    if (name.empty() || llvm::isDigit(name.front()) || !llvm::all_of(name, isWordCharacter) || name.contains('x'))
      throw wrong("a name of letters without 'x', which separates extents, such as M=256:4096:*2", name);
    sweep.names.push_back(name.str());
  }
  if (right.contains(':'))
    sweep.sizes = parseRange(right.trim());
  else
    for (const StringRef size : llvm::split(right, ','))
      sweep.sizes.push_back(sizeOf(size));
  if (sweep.sizes.size() > mostSizes)
    throw wrong(fmt::format("at most {} sizes", mostSizes), text);
  return sweep;
}

std::string Sweep::replacedIn(const std::string &text, int64_t size) const {
  std::string result;
  bool isWithin = false; // brackets
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    isWithin = c == '[' || (isWithin && c != ']');
    size_t end = at;
    while (end < text.size() && isWordCharacter(text[end]) && !(isWithin && text[end] == 'x'))
      ++end;
    if (end == at) {
      result += c;
      ++at;
      continue;
    }
    const std::string word = text.substr(at, end - at);
    const StringRef rest = StringRef(text).substr(end);
    const bool dotBefore = at > 0 && text[at - 1] == '.' && !(at > 1 && text[at - 2] == '.');
    const bool dotAfter = rest.starts_with(".") && !rest.starts_with("..");
    const bool isParameter = rest.ltrim().starts_with("=") || dotBefore || dotAfter;
    result += llvm::is_contained(names, word) && !isParameter ? std::to_string(size) : word;
    at = end;
  }
  return result;
}

void Sweep::checkUsed(const std::string &args) const {
  for (const std::string &name : names)
    if (const Sweep one{{name}, {}}; one.replacedIn(args, 1) == args)
      throw Error(fmt::format("expected --args to use '{0}' of --sweep, such as f32[{0}], but got '{1}'", name, args));
}

} // namespace kiln::tools

// Reads --sweep and replaces its names.

#include "tools/kilnc/Sweep.h"

#include "dialect/dsl/Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>

namespace kiln::tools {

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
static std::vector<int64_t> rangeOf(StringRef text) {
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
    sweep.sizes = rangeOf(right.trim());
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

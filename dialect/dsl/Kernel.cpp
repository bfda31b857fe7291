// Config text: `bm=128,bn=64` to and from a config struct, by the fields that a kernel registered.

#include "dialect/dsl/Kernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace kiln {

std::string printField(int64_t value) { return std::to_string(value); }

std::string printField(double value) {
  char text[32];
  // The shortest of these that reads back as the same number: it stands in cache keys.
  for (int digits : {6, 9, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  return text;
}

int64_t parseInteger(const std::string &field, const std::string &text, int64_t least, int64_t most) {
  if (text == "true" || text == "false")
    return text == "true";
  errno = 0;
  char *end = nullptr;
  int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0)
    throw Error("expected an integer for '" + field + "', but got '" + text + "'");
  if (errno == ERANGE || value < least || value > most)
    throw Error("expected an integer that fits '" + field + "', but got '" + text + "'");
  return value;
}

double parseReal(const std::string &field, const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0)
    throw Error("expected a number for '" + field + "', but got '" + text + "'");
  return value;
}

/// What to say of a field that a kernel has not: the fields it has, and the one most like it.
static Error unknownField(const std::string &kernel, const std::vector<Field> &fields, const std::string &name) {
  if (fields.empty())
    return Error("kernel '" + kernel + "' has no config fields, but got '" + name + "'");
  std::string all;
  const Field *nearest = nullptr;
  unsigned least = 3; // farther than two edits is no misspelling
  for (const Field &field : fields) {
    all += (all.empty() ? "" : ", ") + field.name;
    unsigned distance = llvm::StringRef(field.name).edit_distance(name);
    if (distance < least) {
      least = distance;
      nearest = &field;
    }
  }
  return Error("expected a config field of kernel '" + kernel + "' (" + all + "), but got '" + name + "'" +
               (nearest ? "; did you mean '" + nearest->name + "'?" : ""));
}

void parseConfig(const std::string &kernel, const std::vector<Field> &fields, const std::string &text, void *config) {
  llvm::SmallVector<llvm::StringRef> items;
  if (!text.empty())
    llvm::StringRef(text).split(items, ',');
  llvm::SmallVector<llvm::StringRef> seen;
  for (llvm::StringRef item : items) {
    auto [name, value] = item.split('=');
    name = name.trim();
    if (!item.contains('='))
      throw Error("expected 'name=value' in the config of kernel '" + kernel + "', but got '" + item.str() + "'");
    auto at = std::find_if(fields.begin(), fields.end(), [&](const Field &f) { return name == f.name; });
    if (at == fields.end())
      throw unknownField(kernel, fields, name.str());
    if (llvm::is_contained(seen, name))
      throw Error("expected '" + name.str() + "' once in the config of kernel '" + kernel + "', but got '" + text +
                  "'");
    seen.push_back(name);
    at->parse(config, value.trim().str());
  }
}

} // namespace kiln

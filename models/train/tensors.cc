// Finds a model's tensors in a file; it must have all of them and no others.

#include "models/train/tensors.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {

NameInFile prefixed(const std::string &prefix) {
  return [=](const std::string &name) { return prefix + name; };
}

void readTensors(const Safetensors &file, const ParameterList &list, const NameInFile &nameOf, Type type, void *to) {
  for (const Parameter &p : list.all())
    file.read(nameOf(p.name), type, p.shape, static_cast<char *>(to) + p.offset * bytesOf(type));
}

/// `'a', 'b', 'c' and 4 more`.
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t shown = 3;
  const std::vector<std::string> first(names.begin(), names.begin() + std::min(shown, names.size()));
  const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  return fmt::format("'{}'{}", fmt::join(first, "', '"), more);
}

void verifyNames(const std::string &path, const std::vector<std::string> &held, const ParameterList &list,
                 const NameInFile &nameOf, const std::function<bool(const std::string &)> &mayBeThere) {
  std::set<std::string> missing;
  for (const Parameter &p : list.all())
    missing.insert(nameOf(p.name));
  std::vector<std::string> extra;
  for (const std::string &name : held)
    if (missing.erase(name) == 0 && !(mayBeThere && mayBeThere(name)))
      extra.push_back(name);
  if (!missing.empty())
    throw Error(fmt::format("expected the {} tensors of the model in '{}', but there is no {}", list.all().size(), path,
                            listed({missing.begin(), missing.end()})));
  if (!extra.empty())
    throw Error(fmt::format("expected the {} tensors of the model in '{}', but there is also {}", list.all().size(),
                            path, listed(extra)));
}

} // namespace kiln

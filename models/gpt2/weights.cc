// Finding a model's tensors in a file, all of them and no others.

#include "models/gpt2/weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {

void readTensors(const Safetensors &file, const ParameterList &list, const std::string &prefix, Type type, void *to) {
  for (const Parameter &p : list.all())
    file.read(prefix + p.name, type, p.shape, static_cast<char *>(to) + p.offset * bytesOf(type));
}

static const std::string head = "lm_head.weight", tokenTable = "wte.weight";

/// `h.0.attn.bias` or `h.0.attn.masked_bias` of an attention layer that is among `parameters`.
static bool isMask(const std::string &name, const std::set<std::string> &parameters) {
  for (const std::string kind : {".bias", ".masked_bias"})
    if (name.size() > kind.size() && name.compare(name.size() - kind.size(), kind.size(), kind) == 0)
      return parameters.count(name.substr(0, name.size() - kind.size()) + ".c_attn.weight") > 0;
  return false;
}

/// `'a', 'b', 'c' and 4 more`.
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t shown = 3;
  const std::vector<std::string> first(names.begin(), names.begin() + std::min(shown, names.size()));
  const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  return fmt::format("'{}'{}", fmt::join(first, "', '"), more);
}

/// Throws unless `held`, the names in the file, are the parameters and what may be beside them.
static void verifyNames(const std::string &path, const std::vector<std::string> &held, const ParameterList &list,
                        const std::string &prefix) {
  std::set<std::string> wanted, missing;
  for (const Parameter &p : list.all())
    wanted.insert(prefix + p.name);
  missing = wanted;
  std::vector<std::string> extra;
  for (const std::string &name : held)
    if (missing.erase(name) == 0 && name != head && !isMask(name, wanted))
      extra.push_back(name);
  if (!missing.empty())
    throw Error(fmt::format("expected the {} tensors of the model in '{}', but there is no {}", wanted.size(), path,
                            listed({missing.begin(), missing.end()})));
  if (!extra.empty())
    throw Error(fmt::format("expected the {} tensors of the model in '{}', but there is also {}", wanted.size(), path,
                            listed(extra)));
}

/// Throws unless the file's head, if it has one, is the table of tokens, which this network uses for both.
static void verifyHead(const std::string &path, const Safetensors &file, const ParameterList &list, Type type,
                       const std::vector<char> &values) {
  if (!file.has(head))
    return;
  const auto table =
      std::find_if(list.all().begin(), list.all().end(), [](const Parameter &p) { return p.name == tokenTable; });
  std::vector<char> own(table->count() * bytesOf(type));
  file.read(head, type, table->shape, own.data());
  if (std::memcmp(own.data(), values.data() + table->offset * bytesOf(type), own.size()) != 0)
    throw Error(fmt::format("expected '{}' in '{}' to equal '{}', but it differs: the head shares that table", head,
                            path, tokenTable));
}

std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type) {
  const Safetensors file(path);
  const std::string prefix = file.has("transformer." + tokenTable) ? "transformer." : "";
  verifyNames(path, file.names(), list, prefix);
  std::vector<char> values(list.count() * bytesOf(type));
  readTensors(file, list, prefix, type, values.data());
  verifyHead(path, file, list, type, values);
  return values;
}

} // namespace kiln

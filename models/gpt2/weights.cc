// Finding a model's tensors in a file, all of them and no others.

#include "models/gpt2/weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace kiln {

static const std::string head = "lm_head.weight", tokenTable = "wte.weight";

/// `h.0.attn.bias` or `h.0.attn.masked_bias` of an attention layer that is among `parameters`.
static bool isMask(const std::string &name, const std::set<std::string> &parameters) {
  for (const std::string kind : {".bias", ".masked_bias"})
    if (name.size() > kind.size() && name.compare(name.size() - kind.size(), kind.size(), kind) == 0)
      return parameters.count(name.substr(0, name.size() - kind.size()) + ".c_attn.weight") > 0;
  return false;
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
  std::set<std::string> parameters;
  for (const Parameter &p : list.all())
    parameters.insert(prefix + p.name);
  verifyNames(path, file.names(), list, prefix,
              [&](const std::string &name) { return name == head || isMask(name, parameters); });
  std::vector<char> values(list.count() * bytesOf(type));
  readTensors(file, list, prefix, type, values.data());
  verifyHead(path, file, list, type, values);
  return values;
}

} // namespace kiln

// Reads a model's tensors from a file; it must have all of them and no others.

#include "models/gpt2/weights.h"
#include "models/gpt2/network.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace kiln {

static const std::string tokenTable = "wte.weight";

/// Whether `name` is a mask, such as `h.0.attn.bias` or `h.0.attn.masked_bias`, of an attention layer of `parameters`.
static bool isMask(const std::string &name, const std::set<std::string> &parameters) {
  for (const std::string kind : {".bias", ".masked_bias"})
    if (name.size() > kind.size() && name.compare(name.size() - kind.size(), kind.size(), kind) == 0)
      return parameters.count(name.substr(0, name.size() - kind.size()) + ".c_attn.weight") > 0;
  return false;
}

/// Throws unless the file's head, if present, equals the token embedding, because this network ties them.
static void verifyHead(const std::string &path, const Safetensors &file, const ParameterList &list, Type type,
                       const std::vector<char> &values) {
  if (!file.has(headWeight))
    return;
  const auto table =
      std::find_if(list.all().begin(), list.all().end(), [](const Parameter &p) { return p.name == tokenTable; });
  std::vector<char> own(table->count() * bytesOf(type));
  file.read(headWeight, type, table->shape, own.data());
  if (std::memcmp(own.data(), values.data() + table->offset * bytesOf(type), own.size()) != 0)
    throw Error(fmt::format(
        "expected '{}' in '{}' to equal '{}', but it differs: config.json says that the head shares that table",
        headWeight, path, tokenTable));
}

/// The name without Hugging Face's prefix.
static std::string bare(const std::string &name) {
  return name.starts_with(transformerPrefix) ? name.substr(transformerPrefix.size()) : name;
}

std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type) {
  const Safetensors file(path);
  const std::string prefix = file.has(transformerPrefix + tokenTable) ? transformerPrefix : "";
  const NameInFile nameOf = [&](const std::string &name) {
    return name.starts_with("lm_head.") ? name : prefix + bare(name);
  };
  std::set<std::string> parameters;
  bool isTied = true;
  for (const Parameter &p : list.all()) {
    parameters.insert(nameOf(p.name));
    isTied &= p.name != headWeight;
  }
  verifyNames(path, file.names(), list, nameOf,
              [&](const std::string &name) { return (isTied && name == headWeight) || isMask(name, parameters); });
  std::vector<char> values(list.count() * bytesOf(type));
  readTensors(file, list, nameOf, type, values.data());
  if (isTied)
    verifyHead(path, file, list, type, values);
  return values;
}

} // namespace kiln

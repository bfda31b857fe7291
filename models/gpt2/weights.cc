// Finding a model's tensors in a file.

#include "models/gpt2/weights.h"

#include <algorithm>

namespace kiln {

void readTensors(const Safetensors &file, const ParameterList &list, const std::string &prefix, Type type, void *to) {
  for (const Parameter &p : list.all())
    file.read(prefix + p.name, type, p.shape, static_cast<char *>(to) + p.offset * bytesOf(type));
}

std::vector<char> readWeights(const std::string &folder, const ParameterList &list, Type type) {
  const Safetensors file(folder + "/model.safetensors");
  const std::vector<std::string> names = file.names();
  const bool prefixed = std::find(names.begin(), names.end(), "transformer.wte.weight") != names.end();
  std::vector<char> values(list.count() * bytesOf(type));
  readTensors(file, list, prefixed ? "transformer." : "", type, values.data());
  return values;
}

} // namespace kiln

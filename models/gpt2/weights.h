// Weights in files: safetensors with the names and shapes of Hugging Face's GPT-2, read into a flat buffer.

#pragma once

#include "models/data/safetensors.h"
#include "models/nn/parameters.h"

namespace kiln {

/// Copies every parameter of `list`, named PREFIX and its own name in the file, to its place in the flat buffer `to` of
/// `type`. Throws Error that names the first tensor that is missing or other than the model wants it.
void readTensors(const Safetensors &file, const ParameterList &list, const std::string &prefix, Type type, void *to);

/// The weights in `folder`; names may have Hugging Face's prefix `transformer.`.
std::vector<char> readWeights(const std::string &folder, const ParameterList &list, Type type);

} // namespace kiln

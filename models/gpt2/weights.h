// Weights in files: safetensors with the names and shapes of Hugging Face's GPT-2, read into a flat buffer.

#pragma once

#include "models/data/safetensors.h"
#include "models/nn/parameters.h"

namespace kiln {

/// Copies every parameter of `list`, named PREFIX and its own name in the file, to its place in the flat buffer `to` of
/// `type`. Throws Error that names the first tensor that is missing or other than the model wants it.
void readTensors(const Safetensors &file, const ParameterList &list, const std::string &prefix, Type type, void *to);

/// The weights in the safetensors file `path`, as a flat buffer of `type`. Names may have Hugging Face's prefix
/// `transformer.`. Beside the parameters there may be the masks that GPT-2's older files hold (h.0.attn.bias,
/// h.0.attn.masked_bias), which are constants, and a `lm_head.weight` that equals wte.weight. Throws Error with the
/// names of tensors that are missing, or that are not the model's.
std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type);

} // namespace kiln

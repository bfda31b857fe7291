// Weights in files: safetensors with the names and shapes of Hugging Face's GPT-2, read into a flat buffer.

#pragma once

#include "models/train/tensors.h"

namespace kiln {

/// Reads the weights of the safetensors file `path` into a flat buffer of `type`. Names may have Hugging Face's prefix
/// `transformer.`. Two kinds of extra tensors are accepted: the constant masks of older GPT-2 files (h.0.attn.bias,
/// h.0.attn.masked_bias), and for a tied model a `lm_head.weight` that equals wte.weight. Throws Error with the names
/// of missing or unknown tensors.
std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type);

} // namespace kiln

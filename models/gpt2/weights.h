// Weights in files: safetensors with the names and shapes of Hugging Face's GPT-2, read into a flat buffer.

#pragma once

#include "models/train/tensors.h"

namespace kiln {

/// The weights in the safetensors file `path`, as a flat buffer of `type`. Names may have Hugging Face's prefix
/// `transformer.`. Beside the parameters there may be the masks that GPT-2's older files hold (h.0.attn.bias,
/// h.0.attn.masked_bias), which are constants, and, where the model has no head of its own, a `lm_head.weight` that
/// equals wte.weight. Throws Error with the
/// names of tensors that are missing, or that are not the model's.
std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type);

} // namespace kiln

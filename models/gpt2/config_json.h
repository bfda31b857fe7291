// config.json, the file next to a model's weights that describes the model, as in Hugging Face's library.

#pragma once

#include "models/gpt2/config.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// The config.json of a model with weights of type `saved`. A variant, and a model of plain dropout, which scales in
/// evaluation, have a model_type of their own, which Hugging Face's library refuses.
nlohmann::ordered_json configJson(const Gpt2Config &config, Type saved = f32);

/// Reads the model of config.json in `folder`, a checkpoint or a Hugging Face model. Throws Error that names the field
/// for unsupported values and unknown fields. The type of the weights there is ignored.
Gpt2Config readConfig(const std::string &folder);

/// Reads the training dropout of config.json in `folder`: embd_pdrop, resid_pdrop and attn_pdrop, 0 if missing, and
/// Kiln's own mlp_pdrop and dropout_kind.
DropoutOptions dropoutIn(const std::string &folder);

} // namespace kiln

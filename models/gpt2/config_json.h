// config.json, the file beside a model's weights in which Hugging Face's library writes and reads what the model is.

#pragma once

#include "models/gpt2/config.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// What config.json of such a model says beside weights of type `saved`. A form that is not Hugging Face's, and a model
/// of plain dropout, which evaluations scale for, has a type of its own, which their library refuses.
nlohmann::ordered_json configJson(const Gpt2Config &config, Type saved = f32);

/// The model that config.json in `folder`, a checkpoint or a model from Hugging Face, describes. What it asks for is
/// done, or refused with an Error that names the field; a field that is not known is refused too. The type of the
/// weights there decides nothing.
Gpt2Config readConfig(const std::string &folder);

/// The dropout that config.json in `folder` asks for while training: its embd_pdrop, resid_pdrop and attn_pdrop, 0
/// where it has none, and Kiln's own mlp_pdrop and dropout_kind.
DropoutOptions dropoutIn(const std::string &folder);

} // namespace kiln

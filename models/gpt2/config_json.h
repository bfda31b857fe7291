// config.json, the file with a model's sizes that Hugging Face's library writes and reads beside the weights.

#pragma once

#include "models/gpt2/config.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// What config.json of a model with these sizes says.
nlohmann::ordered_json configJson(const Gpt2Config &config);

/// What config.json in `folder`, a checkpoint or a model from Hugging Face, says. Throws Error.
Gpt2Config readConfig(const std::string &folder);

} // namespace kiln

// A trained model in host memory.

#pragma once

#include "models/gpt2/config.h"
#include "models/tokens/vocabulary.h"
#include "models/train/settings.h"

#include <optional>

namespace kiln {

struct TrainedModel {
  Gpt2Config config;
  std::vector<char> weights = {};            // of config.type, laid out as the network's parameters
  std::optional<Vocabulary> vocabulary = {}; // none: tokens are bytes
  TrainSettings settings = {};               // of its run; defaults if there is no run
};

/// Reads the model in a run's folder, a checkpoint, or a Hugging Face folder, as `dtype` (default fp32). If a running
/// trainer removes the newest checkpoint meanwhile, the next one is read. For a damaged checkpoint the error names an
/// earlier undamaged one. A model of token files may lack its tokenizer: before text is read, verifyTokens() is called.
TrainedModel readTrained(const std::string &folder, const std::optional<std::string> &dtype);

} // namespace kiln

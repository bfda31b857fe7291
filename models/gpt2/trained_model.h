// A trained model in host memory, read from what a user names.

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
  TrainSettings settings = {};               // of its run; where none is known, such as every run has
};

/// The model in a run's folder, a checkpoint, or a folder in Hugging Face's layout, as `dtype` (fp32 when not given). A
/// run that goes on may remove its newest checkpoint while it is read: then there is a newer one. Where it is damaged,
/// the error names one before it that is not.
TrainedModel readTrained(const std::string &folder, const std::optional<std::string> &dtype);

} // namespace kiln

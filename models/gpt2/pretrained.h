// A trained model as a user names it: a run's folder, a checkpoint, a Hugging Face folder, or a safetensors file.

#pragma once

#include <optional>
#include <string>

namespace kiln {

struct Pretrained {
  std::string weights;               // the safetensors file
  std::optional<std::string> folder; // with config.json and the weights; none for a single file
};

/// The model that `path` names; for a run's folder its newest checkpoint. Throws Error if there is none, or one in
/// shards or pickled, with a hint how to convert it.
Pretrained pretrainedAt(const std::string &path);

/// Throws Error if the folder is a checkpoint and one of its files has changed.
void verifyWhole(const Pretrained &model);

} // namespace kiln

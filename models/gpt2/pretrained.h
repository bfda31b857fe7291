// A model that is trained already, as a user names it: a run's folder, a checkpoint, a folder in Hugging Face's layout,
// or a safetensors file alone.

#pragma once

#include <optional>
#include <string>

namespace kiln {

struct Pretrained {
  std::string weights;               // the safetensors file
  std::optional<std::string> folder; // with config.json and the weights; none for a file alone
};

/// What `path` names: of a run's folder its newest checkpoint. Throws Error when there is no model, or one in a form
/// that is not read (in shards, or pickled), with what makes one that is.
Pretrained pretrainedAt(const std::string &path);

/// Throws Error where the folder is a checkpoint, with all its files, and one of them is not as it was written.
void verifyWhole(const Pretrained &model);

} // namespace kiln

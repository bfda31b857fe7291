// The newest checkpoint under fixed names, which make a run's folder a model's folder that Hugging Face's library
// loads:
//   latest             → checkpoint-00000100
//   config.json        → latest/config.json
//   model.safetensors  → latest/model.safetensors
// The links are relative, so that a run may be moved. One rename moves both files to the next checkpoint.

#pragma once

#include <string>

namespace kiln {

/// Points the links in `folder` at the checkpoint `name` in it, in one step: there is no moment without them, and none
/// in which the two files are of different checkpoints. Where the file system has no links there are none. Throws Error
/// (device) when they cannot be written.
void linkModel(const std::string &folder, const std::string &name);

/// Removes the links, and nothing but links of ours. Throws Error (device) when they cannot be removed.
void unlinkModel(const std::string &folder);

/// Throws Error when `folder` holds a model that is no run's: a file of weights, or a config.json, that is no such
/// link.
void verifyNoOtherModel(const std::string &folder);

} // namespace kiln

// The newest checkpoint under fixed names, which make a run's folder a model's folder that Hugging Face's library
// loads:
//   latest             → checkpoint-00000100
//   config.json        → latest/config.json
//   model.safetensors  → latest/model.safetensors
//   best               → checkpoint-00000080, where a run keeps the best one
// The links are relative, so that a run may be moved. One rename moves both files to the next checkpoint.
// A copy of a run's folder that followed its links has files in their places, and a folder; they count as links as long
// as they hold what a checkpoint beside them holds, byte for byte.

#pragma once

#include <optional>
#include <string>

namespace kiln {

/// Points the links in `folder` at the checkpoint `name` in it, in one step: there is no moment without them, and none
/// in which the two files are of different checkpoints. Where the file system has no links there are none. Copies in
/// their places are removed first. Throws Error (device) when they cannot be written.
void linkModel(const std::string &folder, const std::string &name);

/// Points the link `best` in `folder` at the checkpoint `name` in it, in one step, where there are links. Throws Error
/// (device) when it cannot be written.
void linkBest(const std::string &folder, const std::string &name);
/// The checkpoint that it points at, by its name, if it is there.
std::optional<std::string> bestLinked(const std::string &folder);
/// Removes it. Throws Error (device) when that cannot be done.
void unlinkBest(const std::string &folder);

/// Removes the links, or what copying made of them, and nothing else. Throws Error (device) when they cannot be
/// removed.
void unlinkModel(const std::string &folder);

/// Throws Error when `folder` holds a model that is no run's: a file of weights, or a config.json, that is no such link
/// and no copy of a checkpoint's; (device) when that cannot be known.
void verifyNoOtherModel(const std::string &folder);

} // namespace kiln

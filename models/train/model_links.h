// Links to the newest checkpoint under fixed names. They make the run's folder a model folder that Hugging Face's
// library loads:
//
//     latest             → checkpoint-00000100
//     config.json        → latest/config.json
//     model.safetensors  → latest/model.safetensors
//     best               → checkpoint-00000080, if a run keeps the best one
//
// The links are relative, so that a run may be moved. One rename moves both files to the next checkpoint. A copy of a
// run's folder that followed its links has files and a folder in their places. These are accepted as links while they
// equal, byte for byte, those of a checkpoint in the folder.

#pragma once

#include <optional>
#include <string>

namespace kiln {

/// Points the links in `folder` at the checkpoint `name` in it, atomically: they always exist, and both files are
/// always of one checkpoint. On a file system without links it does nothing. Copies in their places are removed first.
/// Throws Error (device) if they cannot be written.
void linkModel(const std::string &folder, const std::string &name);

/// Points the link `best` in `folder` at the checkpoint `name` in it, atomically, if there are links. Throws Error
/// (device) if it cannot be written.
void linkBest(const std::string &folder, const std::string &name);
/// The name of the checkpoint that `best` points at, if it exists.
std::optional<std::string> bestLinked(const std::string &folder);
/// Removes the link `best`. Throws Error (device) if it cannot be removed.
void unlinkBest(const std::string &folder);

/// Removes the links, or the copies of them, and nothing else. Throws Error (device) if they cannot be removed.
void unlinkModel(const std::string &folder);

/// Throws Error if `folder` holds a model that no run wrote: a weight file or config.json that is neither a link nor a
/// copy of a checkpoint's. Throws Error (device) if that cannot be determined.
void verifyNoOtherModel(const std::string &folder);

} // namespace kiln

// Checkpoints, and the tensors in their files.

#pragma once

#include "models/data/safetensors.h"
#include "models/nn/parameters.h"
#include "models/train/model.h"
#include "models/train/run_state.h"

#include <functional>
#include <optional>

namespace kiln {

//===-- Tensors of a file ---------------------------------------------------------------------------------------===//
// A model's tensors in a safetensors file: all of its parameters, by name.

/// Maps the name of a parameter to its name in a file.
using NameInFile = std::function<std::string(const std::string &)>;
/// Prepends `prefix` to the name.
NameInFile prefixed(const std::string &prefix);

/// Copies every parameter of `list` to its place in the flat buffer `to` of `type`. Throws Error that names the first
/// missing or unsuitable tensor.
void readTensors(const Safetensors &file, const ParameterList &list, const NameInFile &nameOf, Type type, void *to);

/// Throws Error unless `held`, the names in the file `path`, are those of the parameters of `list`, and otherwise only
/// names that `mayBeThere` accepts.
void verifyNames(const std::string &path, const std::vector<std::string> &held, const ParameterList &list,
                 const NameInFile &nameOf, const std::function<bool(const std::string &)> &mayBeThere = {});

//===-- Checkpoints ---------------------------------------------------------------------------------------------===//
// Checkpoints: a folder `checkpoint-00000100` in the run's folder, with
//
//     config.json            the model
//     model.safetensors      the weights, by the names and shapes of its parameters
//     optimizer.safetensors  AdamW's two moments, as exp_avg.NAME and exp_avg_sq.NAME; and the master weights as
//                            master.NAME, if the type of model.safetensors does not hold them
//     training.json          step, settings, random state, loss scale, data and the position in it
//
// It is written under another name, synced and renamed, so a folder with this name is complete. Reading checks every
// size, every tensor's checksum, and that all parts belong to one checkpoint. Links in the run's folder show the newest
// checkpoint's model there.

/// Flat buffers in host memory, laid out as a ParameterList says.
struct HostBuffers {
  std::vector<char> values;         // the weights that AdamW updates
  std::vector<float> first, second; // AdamW's moments
  Type type = f32;                  // of `values`
};

/// Names the flat buffers, wherever their memory is. They are read in parts: `count` elements of one buffer, from
/// element `first` on.
enum class FlatBuffer { values, first, second };
struct BufferSource {
  Type type = f32; // of the values
  std::function<void(FlatBuffer which, int64_t first, int64_t count, void *to)> read;
};
BufferSource readFrom(const HostBuffers &buffers);
/// Receives `count` elements of a buffer, from element `first` on.
using BufferSink = std::function<void(FlatBuffer which, int64_t first, int64_t count, const void *from)>;

/// Writes the checkpoint of `state.step` below `folder` and links it as the newest. Then it removes all except the best
/// and those to keep by the settings. On an error the old ones stay. It needs the memory of one tensor in addition to
/// the buffers. Returns the checkpoint's path.
std::string saveCheckpoint(const std::string &folder, const RunState &state, const Model &model,
                           const BufferSource &buffers);

/// Path of the checkpoint of `step` below `folder`.
std::string checkpointPath(const std::string &folder, int64_t step);

/// The path of the newest checkpoint in `folder`; nothing if there is none.
std::optional<std::string> newestCheckpoint(const std::string &folder);

/// For a damaged `checkpoint`: the newest undamaged one before it in its folder. Reads all of them.
std::optional<std::string> wholeCheckpointBefore(const std::string &checkpoint);

/// Removes the newer checkpoints in the folder of `checkpoint`.
void removeCheckpointsAfter(const std::string &checkpoint);

/// Points the links in `folder` (model_links.h) at the newest checkpoint there.
void linkNewest(const std::string &folder);

/// Removes all checkpoints below `folder`, and the links to them.
void removeCheckpoints(const std::string &folder);

/// Reads the weights of `model` in `type`, and the moments. Throws Error if they do not fit the model.
HostBuffers readBuffers(const std::string &checkpoint, const Model &model, Type type = f32);
/// As above, but passes them on in parts, with the memory of one tensor.
void readBuffers(const std::string &checkpoint, const Model &model, Type type, const BufferSink &to);

} // namespace kiln

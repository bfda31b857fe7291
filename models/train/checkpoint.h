// Checkpoints: a folder `checkpoint-00000100` in the run's folder, with
//   config.json            the model's sizes as Hugging Face writes them
//   model.safetensors      the weights, by Hugging Face's GPT-2 names and shapes
//   optimizer.safetensors  AdamW's two moments, as exp_avg.NAME and exp_avg_sq.NAME
//   training.json          step, settings, random state, data and the position in it
// It is written under another name, synced and renamed: a folder of that name is whole. Reading checks every
// size and every tensor's checksum, and that the parts are of one checkpoint.
// Links in the run's folder show the newest one's model there.

#pragma once

#include "models/gpt2/config.h"
#include "models/nn/parameters.h"

#include <optional>

namespace kiln {

/// Flat buffers in host memory, laid out as a ParameterList says.
struct HostBuffers {
  std::vector<char> values;         // of the model's type
  std::vector<float> first, second; // AdamW's moments
};

/// Which file a run trains on.
struct DataIdentity {
  std::string path;
  int64_t bytes = 0;
  uint64_t hash = 0; // FNV-1a of the training part
  bool sameContent(const DataIdentity &other) const { return bytes == other.bytes && hash == other.hash; }
};
uint64_t hashOf(const std::vector<uint8_t> &bytes);

/// All of a run that is no tensor.
struct RunState {
  Gpt2Config config;
  TrainSettings settings;
  int64_t step = 0;      // updates made
  int64_t sequences = 0; // training sequences seen: the position in the data and in the random stream
  DataIdentity data;
};

/// Writes the checkpoint of `state.step` below `folder`, links the newest, then removes all but the newest `keep`. On
/// an error the old ones stay. Returns its path.
std::string saveCheckpoint(const std::string &folder, int64_t keep, const RunState &state, const ParameterList &list,
                           const HostBuffers &buffers);

/// Path of the checkpoint of `step` below `folder`.
std::string checkpointPath(const std::string &folder, int64_t step);

/// Path of the newest checkpoint below `folder`, if there is one.
std::optional<std::string> newestCheckpoint(const std::string &folder);

/// Where `checkpoint` is damaged: the newest one before it in its folder that is not. Reads all of them.
std::optional<std::string> wholeCheckpointBefore(const std::string &checkpoint);

/// Removes the checkpoints in the folder of `checkpoint` that are newer.
void removeCheckpointsAfter(const std::string &checkpoint);

/// Points the links in `folder` (model_links.h) at the newest checkpoint there.
void linkNewest(const std::string &folder);

/// Removes all checkpoints below `folder`, and the links to them.
void removeCheckpoints(const std::string &folder);

/// What training.json of a checkpoint says. Throws Error too when the checkpoint's parts do not belong together.
RunState readRunState(const std::string &checkpoint);
/// Weights and moments.
HostBuffers readBuffers(const std::string &checkpoint, const ParameterList &list, Type type);

} // namespace kiln

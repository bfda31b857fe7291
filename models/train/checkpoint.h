// Checkpoints: a folder `checkpoint-00000100` in the run's folder, with
//   config.json            what the model is
//   model.safetensors      the weights, by the names and shapes of its parameters
//   optimizer.safetensors  AdamW's two moments, as exp_avg.NAME and exp_avg_sq.NAME; and the weights as master.NAME,
//   where
//                          the type that they are saved in above does not hold them
//   training.json          step, settings, random state, loss scale, data and the position in it
// It is written under another name, synced and renamed: a folder of that name is whole. Reading checks every
// size and every tensor's checksum, and that the parts are of one checkpoint.
// Links in the run's folder show the newest one's model there.

#pragma once

#include "models/train/model.h"
#include "models/train/run_state.h"

#include <functional>
#include <optional>

namespace kiln {

/// Flat buffers in host memory, laid out as a ParameterList says.
struct HostBuffers {
  std::vector<char> values;         // the weights that updates change
  std::vector<float> first, second; // AdamW's moments
  Type type = f32;                  // of `values`
};

/// The same wherever they lie, read a part at a time: `count` elements of one of them, from number `first` on.
enum class FlatBuffer { values, first, second };
struct BufferSource {
  Type type = f32; // of the values
  std::function<void(FlatBuffer which, int64_t first, int64_t count, void *to)> read;
};
BufferSource sourceOf(const HostBuffers &buffers);
/// Takes `count` elements of one of them, from number `first` on.
using BufferSink = std::function<void(FlatBuffer which, int64_t first, int64_t count, const void *from)>;

/// Which checkpoints stay: the newest `newest`, and those of multiples of `every` steps (0: no others).
struct KeptCheckpoints {
  int64_t newest, every;
  KeptCheckpoints(int64_t newest, int64_t every = 0) : newest(newest), every(every) {}
};

/// Writes the checkpoint of `state.step` below `folder`, links the newest, then removes all but those to keep and the
/// best. On an error the old ones stay. Beside the buffers it takes the memory of one tensor. Returns its path.
std::string saveCheckpoint(const std::string &folder, const KeptCheckpoints &keep, const RunState &state,
                           const Model &model, const BufferSource &buffers);

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

/// Weights of `model` in `type`, and moments. Throws Error where they are not its own.
HostBuffers readBuffers(const std::string &checkpoint, const Model &model, Type type = f32);
/// The same brought to where they go, in the memory of one tensor.
void readBuffers(const std::string &checkpoint, const Model &model, Type type, const BufferSink &to);

} // namespace kiln

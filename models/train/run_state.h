// The state of a run, and training.json, its file in a checkpoint.

#pragma once

#include "models/train/settings.h"

#include <string>
#include <vector>

namespace kiln {

/// Identifies the data of a run. Without a path: none yet, because the checkpoint comes from another program.
struct DataIdentity {
  std::string path;
  int64_t bytes = 0;
  uint64_t hash = 0; // FNV-1a of the training part
  bool sameContent(const DataIdentity &other) const { return bytes == other.bytes && hash == other.hash; }
};
uint64_t hashOf(const std::vector<uint8_t> &bytes);

/// The loss scale, against underflow of f16 gradients.
struct LossScale {
  double scale = 1; // of the next step
  int64_t good = 0; // updates applied since it last changed
};
/// The initial loss scale for a model of `type`: the settings' in f16, otherwise 1.
LossScale firstLossScale(Type type, const TrainSettings &settings);

/// All of a run except tensors and the model.
struct RunState {
  TrainSettings settings;
  int64_t step = 0;      // steps taken
  int64_t updates = 0;   // steps that were not skipped
  int64_t sequences = 0; // training sequences so far: the position in the data and in the random stream
  LossScale lossScale;
  std::vector<float> outliers = {}; // the window of kernels/outliers.h, if outliers are skipped
  DataIdentity data;
  std::string init; // the file of initial weights, if they were not random
};

/// Sets the settings of a resumed run. The loss scale restarts if the type or the initial scale changes, and not if
/// flags repeat the run's values. Returns a line for each setting that has another value.
std::vector<std::string> goOnWith(RunState &state, const TrainSettings &settings);

/// The state as JSON for training.json, with noIdentity as the checkpoint's identity.
nlohmann::ordered_json stateJson(const RunState &state);

/// Reads training.json of a checkpoint. Throws Error also if the checkpoint's parts do not belong together.
RunState readRunState(const std::string &checkpoint);

} // namespace kiln

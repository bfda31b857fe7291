// Where a run is, and training.json, the file of a checkpoint that says it.

#pragma once

#include "models/train/settings.h"

#include <string>
#include <vector>

namespace kiln {

/// Which file a run trains on. Without a path none yet: the checkpoint is of another program's training.
struct DataIdentity {
  std::string path;
  int64_t bytes = 0;
  uint64_t hash = 0; // FNV-1a of the training part
  bool sameContent(const DataIdentity &other) const { return bytes == other.bytes && hash == other.hash; }
};
uint64_t hashOf(const std::vector<uint8_t> &bytes);

/// What multiplies the loss, for the sake of f16's small gradients.
struct LossScale {
  double scale = 1; // of the next step
  int64_t good = 0; // updates applied since it last changed
};
/// The one that training a model of `type` begins with: that of the settings in f16, else 1.
LossScale firstLossScale(Type type, const TrainSettings &settings);

/// All of a run that is no tensor, beside what its model is.
struct RunState {
  TrainSettings settings;
  int64_t step = 0;      // steps taken
  int64_t updates = 0;   // of those, the ones that were not skipped
  int64_t sequences = 0; // training sequences seen: the position in the data and in the random stream
  LossScale lossScale;
  std::vector<float> outliers = {}; // the window of kernels/outliers.h, where outliers are left out
  DataIdentity data;
  std::string init; // the weights that the run began with, when they were not random
};

/// Sets the settings of a run that is resumed. The loss scale begins anew where they have another type or another first
/// scale, and not where they repeat what the run has. A line for each that has another value.
std::vector<std::string> goOnWith(RunState &state, const TrainSettings &settings);

/// The state as training.json holds it, with noIdentity for the checkpoint's.
nlohmann::ordered_json stateJson(const RunState &state);

/// What training.json of a checkpoint says. Throws Error too when the checkpoint's parts do not belong together.
RunState readRunState(const std::string &checkpoint);

} // namespace kiln

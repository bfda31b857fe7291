// The state of a run, its file training.json, and the identity of a checkpoint.

#pragma once

#include "models/data/safetensors.h"
#include "models/train/model.h"
#include "models/train/settings.h"

#include <map>
#include <string>
#include <vector>

namespace kiln {

//===-- Identity ------------------------------------------------------------------------------------------------===//
// The identity of a checkpoint. Every part names the checkpoint by a hash of all parts. So a mixture of two
// checkpoints, or an edited one, is always detected.

/// The metadata of a safetensors file.
using Metadata = std::map<std::string, std::string>;

/// The texts of a checkpoint's JSON files and the metadata of its weights and moments, each with the identity in it.
struct IdentifiedParts {
  std::string config, training;
  Metadata weights, moments;
};

/// Puts the identity into the parts. `training`, the text of a JSON object, must have noIdentity in its field
/// `checkpoint`, which is replaced. Both metadata, which hold the tensors' checksums, also get `step` and `seed`.
void identify(IdentifiedParts &parts, int64_t step, uint64_t seed);
/// Placeholder of an identity that is not known yet.
inline const std::string noIdentity(16, '0');

/// Throws Error unless the parts of `checkpoint` belong together and are unchanged. The tensors themselves are checked
/// when they are read. Checkpoints of format 1 have no identity and pass.
void verifyParts(const std::string &checkpoint);

//===-- The state of a run --------------------------------------------------------------------------------------===//
// The state of a run, and training.json, its file in a checkpoint.

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

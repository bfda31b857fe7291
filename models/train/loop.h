// The training loop, for any model: from the first step, or from a checkpoint, to the last.

#pragma once

#include "models/train/run_folder.h"
#include "models/train/train_data.h"
#include "models/train/trainer.h"

namespace kiln {

/// What a run is made of. All that it refers to must outlive it.
struct Run {
  const RunOptions &options;
  RunFolder &folder;
  const Model &model;
  TrainData &data;
  /// Of a run that goes on from a checkpoint what that says, with the settings that go for the rest; of a new one the
  /// settings.
  RunState state;
  /// Gives a new run's model what it begins with.
  std::function<void(Trainer &)> begin;
  /// What there is to say before the first step, a line each.
  std::vector<std::string> notes;
  /// As many texts that the model makes as it is, which an evaluation shows; nothing where a model makes none.
  std::function<std::vector<std::string>(Trainer &, int64_t)> samples = {};
  /// What an evaluation is the better for, the less of it (`val_loss`) or the more (`val_accuracy`): the checkpoint of
  /// the best one so far is kept, and the link `best` in the folder points at it. None: the newest are kept alone.
  std::optional<std::string> best = {};
};

/// Trains, and shows, records and saves it in the run's folder, until its last step or another way out (ways_out.h says
/// which there are, and what is saved). A gradient that overflows f16 skips its update while there is a smaller scale
/// of the loss to try. A save on the way that fails is told, and the run goes on. Throws Error.
void train(Run run);

} // namespace kiln

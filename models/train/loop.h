// The training loop, for any model: from the first step, or from a checkpoint, to the last.

#pragma once

#include "models/train/model.h"
#include "models/train/run_folder.h"
#include "models/train/trainer.h"

namespace kiln {

/// The parts of a run. All that it refers to must outlive it.
struct Run {
  const RunOptions &options;
  RunFolder &folder;
  const Model &model;
  TrainData &data;
  /// The state of the checkpoint to resume, with the settings for the rest; for a new run the settings.
  RunState state;
  /// Initialises the model of a new run.
  std::function<void(Trainer &)> begin;
  /// Lines to print before the first step.
  std::vector<std::string> notes;
  /// Generates this many sample texts with the current model, for an evaluation; none if the model cannot.
  std::function<std::vector<std::string>(Trainer &, int64_t)> samples = {};
  /// The tag that chooses the best checkpoint: least `val_loss`, or largest `val_accuracy`. That checkpoint is kept,
  /// and the link `best` in the folder points at it. None: only the newest are kept.
  std::optional<std::string> best = {};
};

/// Trains, prints progress, logs and saves to the run's folder, until the last step or another way out (ways_out.h
/// lists them, and the checkpoint of each). An overflow of f16 skips the update while the loss scale can shrink. A
/// failed save before the last one is reported, and the run continues. Throws Error.
void train(Run run);

} // namespace kiln

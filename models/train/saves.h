// When and how a run in progress is saved.

#pragma once

#include "models/train/progress.h"
#include "models/train/run_folder.h"
#include "models/train/trainer.h"

namespace kiln {

class Saves {
public:
  /// All that it refers to must outlive it. `state` is where the run is, whenever it saves.
  Saves(RunFolder &folder, const RunOptions &options, const Model &model, const RunState &state, const Trainer &trainer)
      : folder(folder), options(options), model(model), state(state), trainer(trainer) {}

  /// Says that the state is in the folder already.
  void isSaved() { saved = state.step; }
  /// Saves, unless that was done or there is no step yet.
  void save();
  /// A save on the way: when it fails (a full disk, say) the run goes on, and the next save is the next chance.
  void saveOnTheWay(Progress &progress);
  /// Saves what can be saved, in a folder made anew if need be, and says what came of it.
  std::string rescue();

private:
  RunFolder &folder;
  const RunOptions &options;
  const Model &model;
  const RunState &state;
  const Trainer &trainer;
  int64_t saved = -1; // step of the last checkpoint
};

} // namespace kiln

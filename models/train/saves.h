// When and how a run in progress is saved.

#pragma once

#include "models/train/progress.h"
#include "models/train/run_folder.h"
#include "models/train/trainer.h"

namespace kiln {

/// Of several ranks the first writes, and the others give it what they have: all make the same calls.
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
  /// Has the best checkpoint kept by what rows of the log say under `tag`, of those after this one, and those that are
  /// there.
  void keepBest(const std::string &tag);
  /// Saves the step of this row, and says which checkpoint is the best now, where the row says more under that tag, or
  /// of a loss less, than any before it.
  void judge(const StepRow &row, Progress &progress);
  /// Saves what can be saved, in a folder made anew if need be, and says what came of it.
  std::string rescue();
  /// Says which steps are lost where nothing can be saved.
  std::string lost() const;

private:
  /// Whether this is better than the best that is kept.
  bool isBetter(double value) const;

  RunFolder &folder;
  const RunOptions &options;
  const Model &model;
  const RunState &state;
  const Trainer &trainer;
  int64_t saved = -1;             // step of the last checkpoint
  std::optional<std::string> tag; // of the best
  std::optional<double> best;
};

} // namespace kiln

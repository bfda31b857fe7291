// Saving of a run in progress.

#pragma once

#include "models/train/progress.h"
#include "models/train/run_folder.h"
#include "models/train/trainer.h"

namespace kiln {

/// With several ranks the first writes, and the others send it their parts; all make equal calls.
class Saves {
public:
  /// Its arguments must outlive it. `state` is read at each save.
  Saves(RunFolder &folder, const Model &model, const RunState &state, const Trainer &trainer)
      : folder(folder), model(model), state(state), trainer(trainer) {}

  /// Marks the present state as saved.
  void isSaved() { saved = state.step; }
  /// Saves, unless it was done already or there is no step yet.
  void save();
  /// Saves during the run. If that fails, for instance on a full disk, the run continues, and the next save tries
  /// again.
  void saveOnTheWay(Progress &progress);
  /// Keeps the best checkpoint by the values of `tag` in later rows of the log. They are compared with the row of the
  /// checkpoint that `best` links to, because the one with the best value may not have been saved.
  void keepBest(const std::string &tag);
  /// If this row's value of the tag is the best so far (for a loss the least), saves its step and makes it the best
  /// checkpoint.
  void judge(const StepRow &row, Progress &progress);
  /// Saves what can be saved, in a new folder if needed, and describes the outcome.
  std::string rescue();
  /// Describes the steps that are lost if nothing can be saved.
  std::string lost() const;

private:
  /// Whether this value is better than that of the best checkpoint.
  bool isBetter(double value) const;

  RunFolder &folder;
  const Model &model;
  const RunState &state;
  const Trainer &trainer;
  int64_t saved = -1;             // step of the last checkpoint
  std::optional<std::string> tag; // of the best
  std::optional<double> best;
};

} // namespace kiln

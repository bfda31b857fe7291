// Saving, and what is said where that fails.

#include "models/train/saves.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

void Saves::save() {
  if (saved == state.step || state.step == 0)
    return;
  saveCheckpoint(folder.path(), options.keep, state, model, trainer.source());
  saved = state.step;
}

void Saves::saveOnTheWay(Progress &progress) {
  try {
    save();
  } catch (const Error &error) {
    if (error.fault != Fault::device)
      throw;
    progress.note(
        fmt::format("warning: step {} is not saved: {}; the run goes on to the next save", state.step, error.what()));
  }
}

std::string Saves::rescue() {
  const int64_t kept = std::max<int64_t>(saved, 0);
  if (state.step == 0)
    return "there is no step to save";
  try {
    if (!folder.holds())
      folder.takeAgain(saved);
    save();
    return fmt::format("step {} is saved in '{}', and --resume goes on from it", state.step, folder.path());
  } catch (const Error &error) {
    return fmt::format("and the steps after {} are lost: {}", kept, error.what());
  }
}

} // namespace kiln

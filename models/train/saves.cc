// Saves checkpoints, and reports failures.

#include "models/train/saves.h"
#include "models/train/model_links.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kiln {

void Saves::save() {
  if (saved == state.step || state.step == 0)
    return;
  if (trainer.share([&](const BufferSource &from) { saveCheckpoint(folder.path(), state, model, from); }))
    saved = state.step;
}

void Saves::saveOnTheWay(Progress &progress) {
  try {
    save();
  } catch (const std::exception &error) {
    if (exitStatus(error) != 3)
      throw;
    progress.note(fmt::format("warning: could not save step {}: {}; training continues", state.step, messageOf(error)));
  }
}

bool Saves::isBetter(double value) const {
  const bool less = tag->ends_with("loss");
  return !best || (less ? value < *best : value > *best);
}

void Saves::keepBest(const std::string &given) {
  tag = given;
  const std::optional<std::string> linked = bestLinked(folder.path());
  std::ifstream log(folder.path() + "/log.jsonl");
  for (std::string line; std::getline(log, line);) {
    const nlohmann::json row = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (linked && row.is_object() && row.contains(*tag) && row.at(*tag).is_number() &&
        std::filesystem::path(checkpointPath(folder.path(), row.at("step"))).filename() == *linked)
      best = row.at(*tag);
  }
}

void Saves::judge(const StepRow &row, Progress &progress) {
  if (!tag)
    return;
  const std::optional<double> value = row.number(*tag);
  const bool better = folder.ranks().isFirst() && value && isBetter(*value); // only the first rank has the log
  if (!folder.ranks().any(better))
    return;
  saveOnTheWay(progress);
  if (saved != state.step || !better) // an unsaved best does not count, so that the next better one is saved
    return;
  best = value;
  linkBest(folder.path(), std::filesystem::path(checkpointPath(folder.path(), state.step)).filename());
}

std::string Saves::rescue() {
  if (state.step == 0)
    return lost();
  try {
    if (folder.isHeld() && !folder.holds())
      folder.takeAgain(saved);
    save();
    return fmt::format("step {} is saved in '{}', and --resume continues from it", state.step, folder.path());
  } catch (const std::exception &error) {
    return fmt::format("{}: {}", lost(), messageOf(error));
  }
}

std::string Saves::lost() const {
  if (state.step == 0)
    return "there is no step to save";
  return saved > 0 ? fmt::format("the steps after {} are lost, and --resume continues from that one", saved)
                   : "the steps so far are lost";
}

} // namespace kiln

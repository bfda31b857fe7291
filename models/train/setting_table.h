// Every setting of a run, once: how users and checkpoints call it, what it may be, and where it lies. Flags, the JSON
// of checkpoints, and the checks are loops over this table, so that a new setting is a member of TrainSettings and a
// line here.

#pragma once

#include "models/train/settings.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln {

class JsonObject;

struct Setting {
  std::string flag;  // without its dashes; errors call the setting so
  std::string field; // of a checkpoint's settings
  std::string help;  // for the flag
  std::string kind;  // of its value, as --help names it: INT, UINT, FLOAT, TEXT
  /// Takes the value of the flag. Throws Error for a text that is none.
  std::function<void(TrainSettings &, const std::string &)> take;
  /// The setting as a checkpoint holds it, and back. A field that came later than the first checkpoints may be missing.
  std::function<nlohmann::ordered_json(const TrainSettings &)> json;
  std::function<void(TrainSettings &, const JsonObject &)> read;
  /// Throws Error for a value out of its range.
  std::function<void(const TrainSettings &)> verify;
  bool decidesMemory = false; // how much of it a step takes
  bool decidesOrder = false;  // which sequences follow those that a run has seen
};

/// In the order in which checkpoints hold them.
const std::vector<Setting> &settingTable();

} // namespace kiln

// All settings of a run, once: their flags, fields, ranges and members. Flags, the JSON of checkpoints and the checks
// are loops over this table. So a new setting is a member of TrainSettings and a line here.

#pragma once

#include "models/train/settings.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln {

class JsonObject;

struct Setting {
  std::string flag;  // without dashes; errors name the setting so
  std::string field; // of the settings in a checkpoint
  std::string help;  // for the flag
  std::string kind;  // type of the value in --help: INT, UINT, FLOAT, TEXT
  /// Parses the flag's value. Throws Error for an invalid text.
  std::function<void(TrainSettings &, const std::string &)> take;
  /// Writes the setting for a checkpoint, and reads it back. A field that is newer than the first checkpoints may be
  /// missing.
  std::function<nlohmann::ordered_json(const TrainSettings &)> json;
  std::function<void(TrainSettings &, const JsonObject &)> read;
  /// Throws Error for a value out of its range.
  std::function<void(const TrainSettings &)> verify;
  bool decidesMemory = false; // whether it changes the memory of a step
  bool decidesOrder = false;  // whether it changes the order of the sequences that follow
  std::string heading;        // below which --help lists the flag
};

/// In the order in which checkpoints hold them.
const std::vector<Setting> &settingTable();

} // namespace kiln

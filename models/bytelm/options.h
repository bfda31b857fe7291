// The command line of `bytelm`: train, sample, info and plot, with their flags.

#pragma once

#include "models/bytelm/config.h"
#include "models/generate/writing_options.h"
#include "models/train/options.h"
#include "models/train/plot.h"

#include <variant>

namespace kiln::bytelm {

/// Sizes given by name, by numbers, or by name with some numbers replaced.
struct ModelOptions {
  std::optional<std::string> model; // seed000 when not given
  std::optional<int64_t> layers, heads, width, inner, context;
};

struct TrainOptions : RunOptions, SettingOptions {
  std::string data;
  ModelOptions model;
  TableInit tables = TableInit::torch;
  std::optional<LinearStart> linears; // the model's when not given
};

struct SampleOptions {
  std::string folder; // a run's folder, or a checkpoint
  MachineOptions machine;
  WritingOptions writing;
};

struct InfoOptions {
  ModelOptions model;
  SettingOptions settings; // batch, accumulate, dtype and master of them
  MachineOptions machine;
  std::optional<MemoryBudget> memory; // that the settings are to fit, and a table of what takes how much
};

using Command = std::variant<TrainOptions, SampleOptions, InfoOptions, PlotOptions>;

/// Reads the command line. Throws Error for a flag, a command or a value that it does not know, with the nearest one.
/// For --help it prints the help, for --version the text given, and returns nothing.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// The model that the options describe; what they do not give comes from `base`, or from the named model.
ByteConfig modelOf(const ModelOptions &options, const std::optional<ByteConfig> &base = {});
/// The named model's settings, or seed000's.
TrainSettings settingsOf(const ModelOptions &options);

} // namespace kiln::bytelm

// The command line of `bytelm`: train, sample, info and plot, with their flags.

#pragma once

#include "models/bytelm/config.h"
#include "models/generate/generation_options.h"
#include "models/train/options.h"
#include "models/train/plot.h"

#include <variant>

namespace kiln::bytelm {

/// A size by name, by numbers, or by name with some numbers replaced.
struct ModelOptions {
  std::optional<std::string> model; // default: base
  std::optional<int64_t> layers, heads, width, inner, context;
};

struct TrainOptions : RunOptions, SettingOptions {
  std::string data;
  ModelOptions model;
  TableInit tables = TableInit::torch;
  std::optional<LinearStart> linears; // default: the model's
};

struct SampleOptions {
  std::string folder; // a run's folder, or a checkpoint
  MachineOptions machine;
  GenerationOptions writing;
};

struct InfoOptions {
  ModelOptions model;
  SettingOptions settings; // those that decide the memory of a step
  MachineOptions machine;
  std::optional<MemoryBudget> memory; // budget to fit; prints a table of the candidates
};

using Command = std::variant<TrainOptions, SampleOptions, InfoOptions, PlotOptions>;

/// Reads the command line. Throws Error for an unknown flag, command or value, with the nearest one. For --help it
/// prints the help, for --version the given text, and returns nothing.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// The model of the options; missing sizes come from `base`, or from the preset.
ByteConfig modelOf(const ModelOptions &options, const std::optional<ByteConfig> &base = {});
/// The preset's settings, by default those of base.
TrainSettings settingsOf(const ModelOptions &options);

} // namespace kiln::bytelm

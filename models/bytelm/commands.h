// The commands of `bytelm`, and the options that its command line gives them.

#pragma once

#include "models/bytelm/network.h"
#include "models/generate/sample_command.h"
#include "models/train/curves.h"
#include "models/train/options.h"

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

/// Reads the command line; see parseCommands() in models/train/flags.h.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// Trains a model, from the first step or from a run's newest checkpoint. This and the others throw Error.
void train(const TrainOptions &options);
/// Prints the prompt and its continuation.
void sample(const SampleOptions &options);
/// Prints each parameter with its size, and the memory of a step.
void info(const InfoOptions &options);

/// The model of the options; missing sizes come from `base`, or from the preset.
ByteConfig chooseModel(const ModelOptions &options, const std::optional<ByteConfig> &base = {});
/// The preset's settings, by default those of base.
TrainSettings chooseSettings(const ModelOptions &options);

} // namespace kiln::bytelm

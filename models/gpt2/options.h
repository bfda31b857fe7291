// The command line of `gpt2`: its commands, with their flags.

#pragma once

#include "models/generate/generation_options.h"
#include "models/gpt2/config.h"
#include "models/train/options.h"
#include "models/train/plot.h"

#include <variant>

namespace kiln {

/// A size by name, by numbers, or by name with some numbers replaced.
struct ModelOptions {
  std::optional<std::string> model; // default: nano
  std::optional<int64_t> layers, heads, width, inner, context, vocab;
  std::optional<bool> tied;
};

struct TrainOptions : RunOptions, SettingOptions {
  std::string data;
  std::optional<std::string> validation; // token files
  std::optional<std::string> tokens;     // bytes, or the folder or file of a tokenizer
  ModelOptions model;
  std::optional<std::string> init; // initial weights: folder of a run or model, or a safetensors file
};

struct SampleOptions {
  std::string folder; // a run's folder, a checkpoint, or a Hugging Face model
  MachineOptions machine;
  GenerationOptions writing;
  std::optional<std::string> dtype; // type to compute in; default: fp32
};

struct EvalOptions {
  std::string folder; // a run's folder, a checkpoint, or a Hugging Face model
  MachineOptions machine;
  std::optional<std::string> data, validation; // as in TrainOptions; the validation set is evaluated
  std::optional<std::string> hellaSwag;        // its tasks
  int64_t tasks = 0;                           // as many of them; 0: all
  SettingOptions batching;                     // of the validation set; default: the run's
  std::optional<std::string> scores;           // file for the loss of each ending
  int64_t batch = 8;                           // sequences at once, four for each task
  std::optional<std::string> dtype;            // type to compute in; default: fp32
};

struct TestOptions {
  ModelOptions model;
  MachineOptions machine;              // device to test
  std::string against = "cpu:generic"; // the device to compare with
  std::optional<std::string> dtype;    // default: fp32
  int64_t batch = 2;
  uint64_t seed = 1;
  std::optional<std::string> llmc, debugState; // llm.c's files: a model, and its debug state
};

struct InfoOptions {
  ModelOptions model;
  SettingOptions settings; // those that decide the memory of a step
  MachineOptions machine;
  std::optional<MemoryBudget> memory;    // budget to fit; prints a table of the candidates
  bool buffers = false;                  // lists every buffer of the plan
  bool launches = false;                 // lists every launch of a step
  int64_t ranks = 1;                     // number of ranks that train together
  std::optional<MemoryBudget> bandwidth; // bytes a second that a rank sends; default: assumed
};

struct ProfileOptions {
  ModelOptions model;
  SettingOptions settings; // those that decide the memory of a step
  MachineOptions machine;
  int64_t steps = 3;
  std::optional<std::string> trace; // file for Perfetto
};

struct ImportOptions {
  std::string model;                 // llm.c's model file
  std::optional<std::string> state;  // its state file
  std::optional<std::string> tokens; // as of TrainOptions
  std::string out;                   // the run's folder
};

struct ExportOptions {
  std::string folder;               // a run's folder, a checkpoint, or a Hugging Face model
  std::string model;                // the file to write
  std::optional<std::string> state; // file for moments and steps
  std::optional<std::string> dtype; // of the weights: fp32 or bf16; default: the run's
};

using Command = std::variant<TrainOptions, SampleOptions, EvalOptions, TestOptions, InfoOptions, PlotOptions,
                             ProfileOptions, ImportOptions, ExportOptions>;

/// Reads the command line. Throws Error for an unknown flag, command or value, with the nearest one. For --help it
/// prints the help, for --version the given text, and returns nothing.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// The preset's name, by default nano.
std::string nameOf(const ModelOptions &options);
/// The model of the options; missing sizes come from `base`, or from the preset.
Gpt2Config modelOf(const ModelOptions &options, const std::optional<Gpt2Config> &base = {});
/// The settings of the options; missing ones come from `base`, or from the preset.
TrainSettings settingsOf(const TrainOptions &options, const std::optional<TrainSettings> &base = {});

} // namespace kiln

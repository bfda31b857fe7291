// The command line of `gpt2`: its commands, with their flags.

#pragma once

#include "models/generate/writing_options.h"
#include "models/gpt2/config.h"
#include "models/train/options.h"
#include "models/train/plot.h"

#include <variant>

namespace kiln {

/// Sizes given by name, by numbers, or by name with some numbers replaced.
struct ModelOptions {
  std::optional<std::string> model; // nano when not given
  std::optional<int64_t> layers, heads, width, inner, context, vocab;
  std::optional<bool> tied;
};

struct TrainOptions : RunOptions, SettingOptions {
  std::string data;
  std::optional<std::string> validation; // files of tokens
  std::optional<std::string> tokens;     // bytes, a tokenizer's folder or file
  ModelOptions model;
  std::optional<std::string> init; // weights to begin with: a run's or a model's folder, or a safetensors file
};

struct SampleOptions {
  std::string folder; // a run's folder, a checkpoint, or a Hugging Face model
  MachineOptions machine;
  WritingOptions writing;
  std::optional<std::string> dtype; // what it computes in; fp32 when not given
};

struct EvalOptions {
  std::string folder; // a run's folder, a checkpoint, or a Hugging Face model
  MachineOptions machine;
  std::optional<std::string> data, validation; // as of TrainOptions; what is held out is looked at
  std::optional<std::string> hellaSwag;        // its tasks
  int64_t tasks = 0;                           // as many of them; 0: all
  SettingOptions batching;                     // of what is held out; the run's when not given
  std::optional<std::string> scores;           // file for what each ending scores
  int64_t batch = 8;                           // sequences at once, four for each task
  std::optional<std::string> dtype;            // what it computes in; fp32 when not given
};

struct TestOptions {
  ModelOptions model;
  MachineOptions machine;              // what is tested
  std::string against = "cpu:generic"; // what it is compared with
  std::optional<std::string> dtype;    // fp32 when not given
  int64_t batch = 2;
  uint64_t seed = 1;
  std::optional<std::string> llmc, debugState; // files of llm.c: a model, and what it makes of a batch
};

struct InfoOptions {
  ModelOptions model;
  SettingOptions settings; // batch, accumulate, dtype and master of them
  MachineOptions machine;
  std::optional<MemoryBudget> memory;    // that the settings are to fit, and a table of what takes how much
  bool buffers = false;                  // list every buffer of the plan
  bool launches = false;                 // and every launch of a step
  int64_t ranks = 1;                     // that train together
  std::optional<MemoryBudget> bandwidth; // what one of them sends in a second; assumed when not given
};

struct ProfileOptions {
  ModelOptions model;
  SettingOptions settings; // batch, accumulate, dtype and master of them
  MachineOptions machine;
  int64_t steps = 3;
  std::optional<std::string> trace; // the file for Perfetto
};

struct ImportOptions {
  std::string model;                 // a file of llm.c
  std::optional<std::string> state;  // the one beside it
  std::optional<std::string> tokens; // as of TrainOptions
  std::string out;                   // the run's folder
};

struct ExportOptions {
  std::string folder;               // a run's folder, a checkpoint, or a Hugging Face model
  std::string model;                // the file to write
  std::optional<std::string> state; // the same of moments and steps
  std::optional<std::string> dtype; // of the weights: fp32 or bf16; the run's when not given
};

using Command = std::variant<TrainOptions, SampleOptions, EvalOptions, TestOptions, InfoOptions, PlotOptions,
                             ProfileOptions, ImportOptions, ExportOptions>;

/// Reads the command line. Throws Error for a flag, a command or a value that it does not know, with the nearest one.
/// For --help it prints the help, for --version the text given, and returns nothing.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// The name that the options give, or nano.
std::string nameOf(const ModelOptions &options);
/// The model that the options describe; what they do not give comes from `base`, or from the named model.
Gpt2Config modelOf(const ModelOptions &options, const std::optional<Gpt2Config> &base = {});
/// The settings that the options describe; what they do not give comes from `base`, or from the named model.
TrainSettings settingsOf(const TrainOptions &options, const std::optional<TrainSettings> &base = {});

} // namespace kiln

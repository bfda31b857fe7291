// The commands of `gpt2`, and the options that its command line gives them.

#pragma once

#include "models/generate/sample_command.h"
#include "models/gpt2/config.h"
#include "models/train/curves.h"
#include "models/train/options.h"

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
                             ImportOptions, ExportOptions, ProfileOptions>;

/// Reads the command line; see parseCommands() in models/train/flags.h.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// Trains as the options say (models/train/loop.h), with a lock on the run's folder. This and the others throw Error.
void train(const TrainOptions &options);
/// Prints the prompt and its continuation.
void sample(const SampleOptions &options);
/// Prints the requested results on validation text and HellaSwag, and writes the file of scores.
void evaluate(const EvalOptions &options);
/// Compares two devices, or a device and llm.c, from the forward pass to the gradient of every tensor. Prints a table
/// of differences relative to the norm, each with its rounding bound. Returns whether all are within their bounds.
bool compare(const TestOptions &options);
/// Prints parameters, the memory plan and the FLOPs of a step, before anything is allocated.
void info(const InfoOptions &options);
/// Runs steps of a model with random weights on random tokens, prints their times by kernel and label, and writes a
/// trace. A first step, which compiles, is excluded.
void profile(const ProfileOptions &options);
/// Makes a run's folder with one checkpoint from llm.c's files of a model and its state, for further training and
/// sampling. Files of another form, and a folder that has checkpoints, are errors.
void importModel(const ImportOptions &options);
/// Writes the model of a run, a checkpoint or a Hugging Face folder, and the state of a checkpoint, as llm.c's files. A
/// model that llm.c does not support is an error.
void exportModel(const ExportOptions &options);

/// The preset's name, by default nano.
std::string nameOf(const ModelOptions &options);
/// The model of the options; missing sizes come from `base`, or from the preset.
Gpt2Config chooseModel(const ModelOptions &options, const std::optional<Gpt2Config> &base = {});
/// The settings of the options; missing ones come from `base`, or from the preset.
TrainSettings chooseSettings(const TrainOptions &options, const std::optional<TrainSettings> &base = {});

} // namespace kiln

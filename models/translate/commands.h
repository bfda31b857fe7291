// The commands of `translate`, and the options that its command line gives them.

#pragma once

#include "models/train/curves.h"
#include "models/train/options.h"
#include "models/translate/network.h"

#include <variant>

namespace kiln::translate {

/// A size by name, by numbers, or by name with some numbers replaced.
struct ModelOptions {
  std::optional<std::string> model; // default: small
  std::optional<int64_t> encoderLayers, layers, heads, width, inner, context;
};

/// The tokenizer of both sides, or one for each.
struct TokensOptions {
  std::optional<std::string> both, source, target;
};

struct TrainOptions : RunOptions, SettingOptions {
  std::string source, target, heldSource, heldTarget; // text files, a sequence a line
  TokensOptions tokens;
  ModelOptions model;
  std::optional<int64_t> epochs; // default: the model's, unless steps are given
  std::string best = "accuracy"; // or loss: the measure that selects the best checkpoint
};

struct TranslateOptions {
  std::string folder;                // a run's folder, or a checkpoint
  std::string source = "-";          // a file of lines; -: standard input
  std::optional<std::string> target; // references of eval
  int64_t batch = 64;                // lines at once
  MachineOptions machine;
};

struct EvalOptions : TranslateOptions {
  std::optional<std::string> translations; // translations to score in place of a model's
  bool cased = false, tokenized = false;
};

struct InfoOptions {
  ModelOptions model;
  int64_t vocab = 8000;
  SettingOptions settings; // those that decide the memory of a step
  MachineOptions machine;
};

using Command = std::variant<TrainOptions, TranslateOptions, EvalOptions, InfoOptions, PlotOptions>;

/// Reads the command line; see parseCommands() in models/train/flags.h.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// Trains a model, from the first step or from a run's newest checkpoint. This and the others throw Error.
void train(const TrainOptions &options);
/// Prints a translation of each line.
void translate(const TranslateOptions &options);
/// Prints the BLEU of translations.
void eval(const EvalOptions &options);
/// Prints each parameter with its size, and the memory of a micro-batch.
void info(const InfoOptions &options);

/// The model of the options, without vocabularies; missing sizes come from `base`, or from the preset.
TranslationConfig chooseModel(const ModelOptions &options, const std::optional<TranslationConfig> &base = {});
/// The preset.
const NamedTranslation &named(const ModelOptions &options);

} // namespace kiln::translate

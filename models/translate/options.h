// The command line of `translate`: train, translate, eval, info and plot, with their flags.

#pragma once

#include "models/train/options.h"
#include "models/train/plot.h"
#include "models/translate/config.h"

#include <variant>

namespace kiln::translate {

/// Sizes given by name, by numbers, or by name with some numbers replaced.
struct ModelOptions {
  std::optional<std::string> model; // small when not given
  std::optional<int64_t> encoderLayers, layers, heads, width, inner, context;
};

/// The tokenizer of both sides, or one for each.
struct TokensOptions {
  std::optional<std::string> both, source, target;
};

struct TrainOptions : RunOptions, SettingOptions {
  std::string source, target, heldSource, heldTarget; // files of lines
  TokensOptions tokens;
  ModelOptions model;
  std::optional<int64_t> epochs; // the model's, unless steps are given
  std::string best = "accuracy"; // or loss: what the best checkpoint is chosen by
};

struct TranslateOptions {
  std::string folder;                // a run's folder, or a checkpoint
  std::string source = "-";          // a file of lines; -: standard input
  std::optional<std::string> target; // what eval compares with
  int64_t batch = 64;                // lines at once
  MachineOptions machine;
};

struct EvalOptions : TranslateOptions {
  std::optional<std::string> translations; // lines to judge in place of a model's
  bool cased = false, tokenized = false;
};

struct InfoOptions {
  ModelOptions model;
  int64_t vocab = 8000;
  SettingOptions settings; // batch, accumulate, dtype and master of them
  MachineOptions machine;
};

using Command = std::variant<TrainOptions, TranslateOptions, EvalOptions, InfoOptions, PlotOptions>;

/// Reads the command line. Throws Error for a flag, a command or a value that it does not know, with the nearest one.
/// For --help it prints the help, for --version the text given, and returns nothing.
std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version = "");

/// The model that the options describe, without vocabularies; what they do not give comes from `base`, or from the
/// named model.
TranslationConfig modelOf(const ModelOptions &options, const std::optional<TranslationConfig> &base = {});
/// The named model.
const NamedTranslation &named(const ModelOptions &options);

} // namespace kiln::translate

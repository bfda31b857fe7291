// The flags of translate, for CLI11.

#include "models/train/configured.h"
#include "models/train/flags.h"
#include "models/translate/commands.h"

namespace kiln::translate {

static void addModel(CLI::App *app, ModelOptions &o) {
  std::string names;
  for (const NamedTranslation &model : translations())
    names += (names.empty() ? "" : ", ") + model.name;
  app->add_option("--model", o.model, "size and form by name: " + names + " (small)");
  addNumber<int64_t>(app, "--encoder-layers", o.encoderLayers, "blocks of the encoder");
  addNumber<int64_t>(app, "--layers", o.layers, "blocks of the decoder");
  addNumber<int64_t>(app, "--heads", o.heads, "attention heads; their number divides the width");
  addNumber<int64_t>(app, "--width", o.width, "channels");
  addNumber<int64_t>(app, "--inner", o.inner, "hidden channels of the MLP");
  addNumber<int64_t>(app, "--context", o.context, "maximum tokens of a line, with </s>; longer pairs are skipped");
}

static CLI::App *addTrain(CLI::App &app, TrainOptions &o) {
  CLI::App *train = app.add_subcommand("train", "train on two files whose lines are translations of each other");
  train->add_option("--source", o.source, "the file to translate from; .gz and .bz2 too")->required();
  train->add_option("--target", o.target, "the file to translate to")->required();
  train->add_option("--validation-source", o.heldSource, "the source file of the validation set")->required();
  train->add_option("--validation-target", o.heldTarget, "the target file of the validation set")->required();
  train->add_option("--tokens", o.tokens.both, "the tokenizer of both sides: a folder, or its tokenizer.json");
  train->add_option("--source-tokens", o.tokens.source, "the tokenizer of the source, if the two differ");
  train->add_option("--target-tokens", o.tokens.target, "the tokenizer of the target");
  addNumber<int64_t>(train, "--epochs", o.epochs, "passes over the pairs, in place of --steps (the model's)");
  train
      ->add_option_function<std::string>(
          "--best",
          [&o](const std::string &text) {
            if (text != "accuracy" && text != "loss")
              throw Error("expected '--best' to be accuracy or loss, but got '" + text + "'");
            o.best = text;
          },
          "validation metric that selects the checkpoint 'best': accuracy, loss (accuracy)")
      ->type_name("TEXT");
  addModel(train, o.model);
  addSettingFlags(train, o);
  addRunFlags(train, o);
  return train;
}

/// Options common to translate and eval; returns the option that names the model.
static CLI::Option *addTranslating(CLI::App *app, TranslateOptions &o) {
  addNumber<int64_t>(app, "--batch", o.batch, "lines at once")->capture_default_str();
  addMachineFlags(app, o.machine);
  return app->add_option("--out,--model-dir", o.folder, "a run's folder, or a checkpoint");
}

static CLI::App *addTranslate(CLI::App &app, TranslateOptions &o) {
  CLI::App *translate = app.add_subcommand("translate", "translate lines by greedy decoding");
  addTranslating(translate, o)->required();
  translate->add_option("--source", o.source, "a file of lines (-: standard input)")->capture_default_str();
  return translate;
}

static CLI::App *addEval(CLI::App &app, EvalOptions &o) {
  CLI::App *eval = app.add_subcommand("eval", "BLEU of a model's translations, or of given translations");
  addTranslating(eval, o);
  eval->add_option("--source", o.source, "a file of lines");
  eval->add_option("--target", o.target, "the file of their translations")->required();
  eval->add_option("--translations", o.translations,
                   "a file of translations to evaluate, in place of --out and --source");
  eval->add_flag("--cased", o.cased, "case-sensitive");
  eval->add_flag("--tokenized", o.tokenized, "split words at spaces only, without the 13a tokenizer");
  return eval;
}

static CLI::App *addInfo(CLI::App &app, InfoOptions &o) {
  CLI::App *info = app.add_subcommand("info", "print the parameters and the memory of a micro-batch");
  addModel(info, o.model);
  addNumber<int64_t>(info, "--vocab", o.vocab, "tokens of the vocabulary of each side")->capture_default_str();
  addMemoryFlags(info, o.settings);
  addMachineFlags(info, o.machine);
  return info;
}

std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<TrainOptions, TranslateOptions, EvalOptions, InfoOptions, PlotOptions>(
      "translate", "Translation, learnt by kernels written in Kiln's tile language", version, argc, argv, addTrain,
      addTranslate, addEval, addInfo, addPlot);
}

const NamedTranslation &named(const ModelOptions &o) { return translationNamed(o.model.value_or("small")); }

TranslationConfig modelOf(const ModelOptions &o, const std::optional<TranslationConfig> &base) {
  TranslationConfig config = named(o).config;
  if (base) {
    const TranslationConfig asked = config;
    config = *base;
    if (o.model) {
      config.encoderLayers = asked.encoderLayers;
      takeSizes(config, asked);
    }
  }
  config.encoderLayers = o.encoderLayers.value_or(config.encoderLayers);
  replaceSizes(config, o);
  return config;
}

} // namespace kiln::translate

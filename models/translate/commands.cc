// The commands of `translate`, and their flags for CLI11; translations.cc has translate and eval.

#include "models/translate/commands.h"
#include "models/tokens/files.h"
#include "models/train/flags.h"
#include "models/train/loop.h"
#include "models/train/settings.h"
#include "models/translate/network.h"
#include "models/translate/pair_data.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

namespace kiln::translate {

//===-- Flags ---------------------------------------------------------------------------------------------------===//

static constexpr const char *defaultModel = "small";

static void addModel(CLI::App *app, ModelOptions &o) {
  app->add_option("--model", o.model,
                  fmt::format("size and form by name: {}", fmt::join(presetNames(translations()), ", ")))
      ->default_str(defaultModel)
      ->group("Model");
  addNumber<int64_t>(app, "--encoder-layers", o.encoderLayers, "blocks of the encoder")->group("Model");
  addSizeFlags(app, o, "blocks of the decoder", "hidden channels of the MLP",
               "maximum tokens of a line, with </s>; longer pairs are skipped");
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
  addSettingFlags(train, o, defaultModel, translationNamed(defaultModel).settings);
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
  addMemoryFlags(info, o.settings, defaultModel, translationNamed(defaultModel).settings);
  addMachineFlags(info, o.machine);
  return info;
}

std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<TrainOptions, TranslateOptions, EvalOptions, InfoOptions, PlotOptions>(
      "translate", "Translation, learnt by kernels written in Kiln's tile language", version, argc, argv, addTrain,
      addTranslate, addEval, addInfo, addPlot);
}

const NamedTranslation &named(const ModelOptions &o) { return translationNamed(o.model.value_or(defaultModel)); }

TranslationConfig chooseModel(const ModelOptions &o, const std::optional<TranslationConfig> &base) {
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

//===-- Training and information --------------------------------------------------------------------------------===//

namespace {
/// The initial state of a new or resumed run.
struct Start {
  TranslationConfig config;
  RunState state;
  PairTokenizers tokenizers;
  std::vector<std::string> notes = {};
};
} // namespace

/// The tokenizers named by the options.
static PairTokenizers readTokenizers(const TokensOptions &o) {
  if (o.both ? o.source || o.target : !(o.source && o.target))
    throw Error("train requires --tokens, the tokenizer of both sides, or --source-tokens and --target-tokens");
  const Tokenizer source(readVocabulary(o.both.value_or(o.source.value_or(""))));
  return {source, o.both ? source : Tokenizer(readVocabulary(*o.target))};
}

/// The initial state of a new run, without the number of steps.
static Start begin(const TrainOptions &o) {
  Start start = {chooseModel(o.model), {.settings = replaced(o, named(o.model).settings)}, readTokenizers(o.tokens)};
  start.config.sourceVocab = start.tokenizers.source.size();
  start.config.vocab = start.tokenizers.target.size();
  verify(start.config);
  return start;
}

/// The checkpoint's state and model. Flags may repeat the model's properties, but not change them.
static Start resume(const TrainOptions &o, const RunFolder &folder) {
  Start start = folder.read([&](const std::string &path) {
    return Start{readTranslationConfig(path), readRunState(path), readRunTokens(path)};
  });
  const TranslationConfig asked = chooseModel(o.model, start.config);
  expectModel(asked.sameModel(start.config), "the checkpoint's model", start.config, asked);
  start.config.form.start = asked.form.start;
  start.notes = goOnWith(start.state, applied(o, start.state.settings));
  return start;
}

/// Sets the number of steps to the epochs that flags request. A new run without such flags gets its preset's epochs,
/// and an evaluation after each.
static void setSteps(TrainSettings &settings, const TrainOptions &o, int64_t batches) {
  const int64_t epochs = o.epochs.value_or(o.resume || o.has("steps") ? 0 : named(o.model).epochs);
  const int64_t each = cdiv(batches, settings.accumulate);
  if (o.epochs)
    expectBetween("--epochs", epochs, largestSize);
  if (o.epochs && o.has("steps"))
    throw Error("--epochs and --steps exclude each other");
  if (epochs > 0)
    settings.steps = epochs * each;
  if (o.resume)
    return;
  if (!o.has("evaluate-every"))
    settings.evaluateEvery = each;
  if (!o.has("warmup"))
    settings.warmup = std::min(settings.warmup, settings.steps);
}

void train(const TrainOptions &options) {
  if (options.has("order"))
    throw Error("--order requires a text as data; pairs of lines are batched by their lengths");
  verify(static_cast<const RunOptions &>(options));
  std::optional<Start> begun = options.resume ? std::nullopt : std::optional(begin(options));
  RunFolder folder(options, openRanks());
  if (options.resume)
    begun = resume(options, folder);
  TrainSettings &settings = begun->state.settings;
  divide(settings, folder.ranks().size(), /*isCut=*/false);
  if (settings.batching != Batching::stream)
    throw Error("--batching must be stream; pairs of lines are batched by their lengths");
  PairData data({options.source, options.target}, {options.heldSource, options.heldTarget}, begun->tokenizers,
                begun->config.context, {settings.batch, settings.batchTokens}, settings.seed);
  setSteps(settings, options, data.batchesOfPass());
  settings = applied(options, settings);
  if (!options.resume && folder.isHeld())
    writeRunTokens(folder.path(), begun->tokenizers);
  for (const std::string &note : data.notes())
    begun->notes.push_back(note);
  const TranslationNetwork network(configured(begun->config, settings));
  const uint64_t seed = settings.seed;
  kiln::train(Run{.options = options,
                  .folder = folder,
                  .model = network,
                  .data = data,
                  .state = begun->state,
                  .begin = [=](Trainer &trainer) { trainer.initialize(seed); },
                  .notes = begun->notes,
                  .best = "val_" + options.best});
}

void info(const InfoOptions &options) {
  TrainSettings settings = replaced(options.settings, named(options.model).settings);
  TranslationConfig config = configured(chooseModel(options.model), settings);
  config.sourceVocab = config.vocab = options.vocab;
  const TranslationNetwork network(config);
  std::string text = fmt::format("model        {}\n\n{}\n", textOf(config), kiln::textOf(network.parameters()));
  const int64_t longest = config.context, sequences = settings.batchTokens > 0
                                                          ? std::min(settings.batch, settings.batchTokens / longest)
                                                          : settings.batch;
  const BatchShape shape = network.shape(std::max<int64_t>(sequences, 1));
  const Target target = chooseTarget(*openDevice(options.machine), settings, /*shapes=*/2); // shorter sequences, too
  const MemoryPlan memory = planMemory(target, network, shape, settings);
  text += fmt::format("memory       {:.2f} MiB for micro-batches of {} pairs as long as the context, {:.2f} of them "
                      "activations\n",
                      static_cast<double>(memory.total()) / 1048576, shape.sequences,
                      static_cast<double>(memory.activations) / 1048576);
  text += fmt::format("step         {:.3f} GFLOP in {} micro-batches\n",
                      network.flops(shape) * static_cast<double>(settings.accumulate) / 1e9, settings.accumulate);
  writeResult(text);
}

} // namespace kiln::translate

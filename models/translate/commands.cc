// The commands of `translate`.

#include "models/translate/commands.h"
#include "models/tokens/files.h"
#include "models/train/configured.h"
#include "models/train/loop.h"
#include "models/translate/network.h"
#include "models/translate/run_tokens.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

namespace kiln::translate {

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
static PairTokenizers tokenizersOf(const TokensOptions &o) {
  if (o.both ? o.source || o.target : !(o.source && o.target))
    throw Error("train requires --tokens, the tokenizer of both sides, or --source-tokens and --target-tokens");
  const Tokenizer source(readVocabulary(o.both.value_or(o.source.value_or(""))));
  return {source, o.both ? source : Tokenizer(readVocabulary(*o.target))};
}

/// The initial state of a new run, without the number of steps.
static Start begin(const TrainOptions &o) {
  Start start = {modelOf(o.model), {.settings = replaced(o, named(o.model).settings)}, tokenizersOf(o.tokens)};
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
  const TranslationConfig asked = modelOf(o.model, start.config);
  if (!asked.sameModel(start.config))
    throw Error(
        fmt::format("the checkpoint's model has {}, but the flags ask for {}", textOf(start.config), textOf(asked)));
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
  TranslationConfig config = configured(modelOf(options.model), settings);
  config.sourceVocab = config.vocab = options.vocab;
  const TranslationNetwork network(config);
  std::string text = fmt::format("model        {}\n\n", textOf(config));
  int64_t total = 0;
  for (const Parameter &p : network.parameters().all()) {
    if (p.role == Role::fixed)
      continue;
    text += fmt::format("{:12}  {:<12} {}\n", p.count(), kiln::textOf(p.shape), p.name);
    total += p.count();
  }
  text += fmt::format("{:12}  parameters\n\n", total);
  const int64_t longest = config.context, sequences = settings.batchTokens > 0
                                                          ? std::min(settings.batch, settings.batchTokens / longest)
                                                          : settings.batch;
  const BatchShape shape = network.shape(std::max<int64_t>(sequences, 1));
  const Target target = targetOf(*openDevice(options.machine), settings, /*shapes=*/2); // shorter sequences, too
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

// `gpt2 train`.

#include "models/data/shards.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/config_json.h"
#include "models/gpt2/greedy.h"
#include "models/gpt2/init.h"
#include "models/gpt2/tokens_of.h"
#include "models/tokens/files.h"
#include "models/train/configured.h"
#include "models/train/language_data.h"
#include "models/train/loop.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln {

namespace {
/// The initial state of a new or resumed run.
struct Start {
  Gpt2Config config; // read first, so that its errors name the file
  RunState state;
  std::vector<std::string> notes = {};
  std::optional<Vocabulary> vocabulary = {}; // none: tokens are bytes, or come from token files
};
} // namespace

/// The tokenizer in the run's folder. Flags may repeat it, but not change it.
static std::optional<Vocabulary> vocabularyOfRun(const TrainOptions &options, const RunFolder &folder) {
  const std::optional<Vocabulary> held =
      hasVocabulary(folder.path()) ? std::optional(readVocabulary(folder.path())) : std::nullopt;
  if (!options.tokens)
    return held;
  const Vocabulary asked = readVocabulary(*options.tokens);
  if (asked != held.value_or(byteVocabulary()))
    throw Error(fmt::format("--tokens '{}' is not the tokenizer of the run", *options.tokens));
  return held;
}

/// The checkpoint's state and model. Flags may repeat the model's properties, but not change them.
static Start resume(const TrainOptions &options, const RunFolder &folder) {
  Start r = folder.read([](const std::string &path) { return Start{readConfig(path), readRunState(path)}; });
  const Gpt2Config asked = modelOf(options.model, r.config);
  if (!(asked == r.config))
    throw Error(
        fmt::format("the checkpoint's model has {}, but the flags ask for {}", textOf(r.config), textOf(asked)));
  r.vocabulary = vocabularyOfRun(options, folder);
  if (r.vocabulary || !namesShards(options.data))
    verifyTokens(r.config, r.vocabulary);
  r.notes = goOnWith(r.state, settingsOf(options, r.state.settings));
  return r;
}

/// The initial state of a new run.
static Start begin(const Beginning &beginning) {
  return {beginning.config(),
          {.settings = beginning.settings(), .init = beginning.weights()},
          beginning.notes(),
          beginning.vocabulary()};
}

/// Copies the tokenizer into a new run's folder, next to the model, where sampling and Hugging Face's library expect
/// it.
static void keepVocabulary(const std::string &folder, const std::optional<Vocabulary> &vocabulary) {
  for (const char *name : {"tokenizer.json", "vocab.json", "merges.txt"}) // left by an earlier run
    std::filesystem::remove(std::filesystem::path(folder) / name);
  if (vocabulary)
    writeVocabulary(folder, *vocabulary);
}

void train(const TrainOptions &options) {
  if (options.resume && options.init)
    throw Error("--resume and --init exclude each other; --resume continues a run, --init starts a new one");
  verify(static_cast<const RunOptions &>(options));
  verify(options, options);
  const std::optional<Beginning> beginning = options.resume ? std::nullopt : std::optional<Beginning>(options);
  RunFolder folder(options, openRanks());
  Start begun = beginning ? begin(*beginning) : resume(options, folder);
  begun.config = configured(begun.config, begun.state.settings);
  const Network alone(begun.config); // for sample texts
  LanguageSource source = {.data = options.data, .held = options.validation, .threads = options.machine.threads};
  setBatching(source, begun.config, begun.state.settings, begun.vocabulary);
  const Network network(begun.config);
  if (const std::optional<std::string> cut = divide(begun.state.settings, folder.ranks().size()))
    begun.notes.push_back(*cut);
  const uint64_t seed = begun.state.settings.seed;
  const std::optional<Tokenizer> tokenizer =
      begun.vocabulary ? std::optional<Tokenizer>(*begun.vocabulary) : std::nullopt;
  source.tokenizer = tokenizer ? &*tokenizer : nullptr;
  source.vocab = begun.config.vocab;
  source.llmcRows = llmcRowsOf(begun.state.settings);
  // Plain attention stores weight matrices, and its kernels are specialised for the length.
  source.batch = begun.config.attention == AttentionForm::plain ? 0 : begun.state.settings.batch;
  source.folder = folder.isHeld() ? folder.path() : ""; // other ranks find documents themselves
  LanguageData data(source, begun.config.context, seed);
  if (beginning && folder.isHeld())
    keepVocabulary(folder.path(), begun.vocabulary);
  for (const std::string &line : data.notes())
    begun.notes.push_back(line);
  if (begun.state.settings.samples > 0 && namesShards(options.data) && !tokenizer)
    throw Error(fmt::format("--samples requires --tokens, because '{}' holds only token numbers", options.data));
  const Tokenizer letters = tokenizer.value_or(Tokenizer(byteVocabulary()));
  train(Run{
      .options = options,
      .folder = folder,
      .model = network,
      .data = data,
      .state = begun.state,
      .begin = [&](Trainer &trainer) { beginning->fill(trainer, network, seed); },
      .notes = begun.notes,
      .samples = [&](Trainer &trainer, int64_t count) { return greedyTexts(trainer, alone, data, letters, count); }});
}

} // namespace kiln

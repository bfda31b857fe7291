// `gpt2 train`: the start of a new or resumed run, sample texts of the model in training, and the run.

#include "models/data/batches.h"
#include "models/data/shards.h"
#include "models/generate/generator.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/files.h"
#include "models/tokens/vocabulary.h"
#include "models/train/language_data.h"
#include "models/train/loop.h"
#include "models/train/settings.h"
#include "models/train/trainer.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace kiln {

//===-- The start of a new run ----------------------------------------------------------------------------------===//

namespace {
/// Random weights, or those of --init.
class Beginning {
public:
  /// Throws Error if --init contradicts another flag, names no model, or a model for other tokens.
  explicit Beginning(const TrainOptions &options);

  /// The model's config: that of the --init folder, which flags may repeat and not change; for a file or without --init
  /// that of the flags.
  const Gpt2Config &config() const { return sizes; }
  /// The tokenizer; none for bytes, and for token files without one.
  const std::optional<Vocabulary> &vocabulary() const { return tokens; }
  /// The settings of the flags. The rest come from the named preset; for a folder without --model from the preset
  /// nearest in size.
  TrainSettings settings() const;
  /// The file of the initial weights; empty if they are random.
  std::string weights() const { return source ? source->weights : ""; }
  /// Gives the trainer of `network` its weights, with a fresh optimizer state.
  void fill(Trainer &trainer, const Network &network, uint64_t seed) const;
  /// Notes about the start, a line each.
  std::vector<std::string> notes() const;

private:
  bool takesDropout() const;
  bool isFineTuning() const;

  const TrainOptions &options;
  std::optional<Pretrained> source;
  std::optional<Vocabulary> tokens;
  Gpt2Config sizes;
  DropoutOptions asked;
};
} // namespace

namespace fs = std::filesystem;

/// Whether `path` is within `folder`.
static bool isWithin(const std::string &path, const std::string &folder) {
  const fs::path inner = fs::weakly_canonical(path), outer = fs::weakly_canonical(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

static std::optional<Pretrained> readPretrained(const TrainOptions &options) {
  if (!options.init)
    return {};
  const Pretrained source = pretrainedAt(*options.init);
  if (options.overwrite && isWithin(source.weights, options.out))
    throw Error(fmt::format(
        "--init must name weights outside of '{}', because --overwrite removes its checkpoints, but got '{}'",
        options.out, source.weights));
  return source;
}

/// The tokenizer that the options name, or else that of the initial model.
static std::optional<Vocabulary> chooseVocabulary(const TrainOptions &options,
                                                  const std::optional<Pretrained> &source) {
  if (options.tokens)
    return *options.tokens == "bytes" ? std::nullopt : std::optional(readVocabulary(*options.tokens));
  return source ? vocabularyBeside(*source) : std::nullopt;
}

static Gpt2Config chooseSizes(const TrainOptions &options, const std::optional<Pretrained> &source,
                              const std::optional<Vocabulary> &vocabulary) {
  if (!source || !source->folder) {
    ModelOptions model = options.model;
    if (vocabulary && !model.vocab)
      model.vocab = vocabulary->size();
    return chooseModel(model);
  }
  const Gpt2Config held = readConfig(*source->folder), asked = chooseModel(options.model, held);
  expectModel(asked == held, fmt::format("the model in '{}'", *source->folder), held, asked);
  return held;
}

Beginning::Beginning(const TrainOptions &options)
    : options(options), source(readPretrained(options)), tokens(chooseVocabulary(options, source)),
      sizes(chooseSizes(options, source, tokens)),
      asked(source && source->folder ? dropoutIn(*source->folder) : DropoutOptions()) {
  if (tokens || !namesShards(options.data))
    verifyTokens(sizes, tokens);
  if (source)
    verifyWhole(*source);
}

TrainSettings Beginning::settings() const {
  TrainOptions named = options;
  if (source && source->folder && !named.model.model)
    named.model.model = nearestGpt2(sizes);
  if (isFineTuning())
    for (const auto &[flag, value] : {std::pair("lr", "3e-5"), {"schedule", "constant"}, {"warmup", "0"}})
      named.given.emplace(flag, value); // unless the user gave it
  if (takesDropout()) {
    named.given["dropout-embedding"] = fmt::format("{}", asked.embedding);
    named.given["dropout-residual"] = fmt::format("{}", asked.residual);
    named.given["dropout-attention"] = fmt::format("{}", asked.attention);
    named.given["dropout-activation"] = fmt::format("{}", asked.activation);
    named.given["dropout-kind"] = dropoutKindNames[static_cast<size_t>(asked.kind)];
  }
  return chooseSettings(named);
}

/// Whether the run fine-tunes trained weights, with defaults as in nanoGPT's examples. It does if --init names a folder
/// and --model names no preset, whose settings would apply instead.
bool Beginning::isFineTuning() const { return source && source->folder && !options.model.model; }

/// Whether to use the dropout of the model's config.json: yes, unless a flag sets dropout.
bool Beginning::takesDropout() const {
  const auto speaks = [](const auto &flag) { return flag.first.starts_with("dropout"); };
  return (asked.embedding > 0 || asked.residual > 0 || asked.activation > 0 || asked.attention > 0) &&
         std::none_of(options.given.begin(), options.given.end(), speaks);
}

void Beginning::fill(Trainer &trainer, const Network &network, uint64_t seed) const {
  trainer.initialize(seed);
  if (source)
    trainer.uploadWeights(readWeights(source->weights, network.parameters(), trainer.keptType()));
}

std::vector<std::string> Beginning::notes() const {
  if (!source)
    return {};
  std::vector<std::string> lines = {fmt::format("initial weights: '{}'", source->weights)};
  if (isFineTuning() && !options.has("lr"))
    lines.push_back(
        "the learning rate is 3e-5, and constant, as for weights that are trained already; --lr gives another");
  if (takesDropout())
    lines.push_back(fmt::format("dropout rates from its config.json: embedding {}, residual {}, attention {}; "
                                "--dropout overrides them",
                                asked.embedding, asked.residual, asked.attention));
  return lines;
}

//===-- Sample texts --------------------------------------------------------------------------------------------===//

/// The maximum number of tokens of the prompt, and of generated tokens.
static constexpr int64_t mostGiven = 12, mostMade = 32;

/// The first tokens of a sequence, at most `most`, up to the sequence's end.
static std::vector<int32_t> takeBeginning(const HostBatch &batch, int64_t most) {
  const std::vector<int32_t> tokens = batch.at("tokens").numbers<int32_t>(),
                             targets = batch.at("targets").numbers<int32_t>();
  std::vector<int32_t> given;
  for (size_t i = 0; i < tokens.size() && std::ssize(given) < most && targets[i] != ignoredTarget; ++i)
    given.push_back(tokens[i]);
  return given;
}

namespace {
/// A text in progress.
struct Growing {
  std::string text;
  int64_t length;
  bool isFinished;
};
} // namespace

/// `count` texts from positions that are evenly spread over the validation set and equal each time. A text has a few of
/// the set's tokens, `→`, and the greedy continuation up to the end of a document.
static std::vector<std::string> greedyTexts(Trainer &trainer, const Network &network, const TrainData &data,
                                            const Tokenizer &tokenizer, int64_t count) {
  const int64_t context = network.config().context, given = std::min(mostGiven, cdiv(context, 2));
  const std::optional<int32_t> mark = documentMark(tokenizer.vocabulary()), end = documentEnd(tokenizer.vocabulary());
  Generator generator(trainer.machine(), network, trainer.weights(), {.sequences = count});
  std::vector<Growing> texts;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int32_t> tokens =
        takeBeginning(data.validation({i * data.validationSequences() / count}, 1), given);
    const int64_t length = std::ssize(tokens);
    texts.push_back({tokenizer.decode(tokens) + "→", length, length == 0 || length >= context});
    generator.append(i, tokens.empty() ? std::vector<int32_t>{0} : tokens); // a text without a prompt is skipped
  }
  for (int64_t made = 0; made < mostMade; ++made) {
    const std::vector<std::vector<float>> logits = generator.next();
    for (int64_t i = 0; i < count; ++i) {
      Growing &text = texts[i];
      if (text.isFinished)
        continue;
      const auto first = logits[i].begin(), last = first + tokenizer.size(); // the rest is padding
      const auto token = static_cast<int32_t>(std::max_element(first, last) - first);
      text.isFinished = token == mark || token == end || ++text.length >= context;
      if (token != mark && token != end)
        text.text += tokenizer.decode({&token, 1});
      if (!text.isFinished)
        generator.append(i, {&token, 1});
    }
  }
  std::vector<std::string> all;
  for (const Growing &text : texts)
    if (text.length > 0)
      all.push_back(text.text);
  return all;
}

//===-- The command ---------------------------------------------------------------------------------------------===//

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
  const Gpt2Config asked = chooseModel(options.model, r.config);
  expectModel(asked == r.config, "the checkpoint's model", r.config, asked);
  r.vocabulary = vocabularyOfRun(options, folder);
  if (r.vocabulary || !namesShards(options.data))
    verifyTokens(r.config, r.vocabulary);
  r.notes = goOnWith(r.state, chooseSettings(options, r.state.settings));
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
  source.llmcRows = rowsOfLlmc(begun.state.settings);
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

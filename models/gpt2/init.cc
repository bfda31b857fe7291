// Initial weights: random, or read from a folder or a file.

#include "models/gpt2/init.h"
#include "models/data/shards.h"
#include "models/gpt2/presets.h"
#include "models/gpt2/tokens_of.h"
#include "models/gpt2/weights.h"
#include "models/tokens/files.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace kiln {

namespace fs = std::filesystem;

/// Whether `path` is within `folder`.
static bool isWithin(const std::string &path, const std::string &folder) {
  const fs::path inner = fs::weakly_canonical(path), outer = fs::weakly_canonical(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

static std::optional<Pretrained> sourceOf(const TrainOptions &options) {
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
static std::optional<Vocabulary> vocabularyOf(const TrainOptions &options, const std::optional<Pretrained> &source) {
  if (options.tokens)
    return *options.tokens == "bytes" ? std::nullopt : std::optional(readVocabulary(*options.tokens));
  return source ? vocabularyBeside(*source) : std::nullopt;
}

static Gpt2Config sizesOf(const TrainOptions &options, const std::optional<Pretrained> &source,
                          const std::optional<Vocabulary> &vocabulary) {
  if (!source || !source->folder) {
    ModelOptions model = options.model;
    if (vocabulary && !model.vocab)
      model.vocab = vocabulary->size();
    return modelOf(model);
  }
  const Gpt2Config held = readConfig(*source->folder), asked = modelOf(options.model, held);
  if (!(asked == held))
    throw Error(fmt::format("the model in '{}' has {}, but the flags ask for {}", *source->folder, textOf(held),
                            textOf(asked)));
  return held;
}

Beginning::Beginning(const TrainOptions &options)
    : options(options), source(sourceOf(options)), tokens(vocabularyOf(options, source)),
      sizes(sizesOf(options, source, tokens)),
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
  return settingsOf(named);
}

/// Whether the run fine-tunes trained weights by defaults as in nanoGPT's examples: --init names a folder, and --model
/// names no preset, whose settings would apply instead.
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

} // namespace kiln

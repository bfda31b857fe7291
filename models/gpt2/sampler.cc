// Choosing the next token, and the loop around it. Choosing is no arithmetic of a training step: it is done on the
// host.

#include "models/gpt2/sampler.h"
#include "models/gpt2/config_json.h"
#include "models/gpt2/predictor.h"
#include "models/gpt2/tokens_of.h"
#include "models/gpt2/weights.h"
#include "models/train/checkpoint.h"
#include "runtime/Streams.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace kiln {

int64_t choose(const std::vector<float> &logits, double temperature, int64_t topK, double uniform) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  if (temperature == 0)
    return order.front();
  if (topK > 0 && topK < static_cast<int64_t>(order.size()))
    order.resize(topK);
  std::vector<double> weights;
  for (int64_t i : order)
    weights.push_back(std::exp((logits[i] - logits[order.front()]) / temperature));
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < order.size(); ++i)
    if ((left -= weights[i]) < 0)
      return order[i];
  return order.back();
}

/// The model to sample from, with its config.json.
static Pretrained modelIn(const SampleOptions &options) {
  const Pretrained found = pretrainedAt(options.folder);
  if (!found.folder)
    throw Error(fmt::format("expected a folder with a config.json, but got the file '{}'", options.folder));
  return found;
}

static void verify(const SampleOptions &o) {
  if (o.prompt.empty())
    throw Error("expected a prompt of at least one byte, but got an empty one");
  if (o.tokens < 1)
    throw Error(fmt::format("expected 'tokens' to be at least 1, but got {}", o.tokens));
  if (!(o.temperature >= 0))
    throw Error(fmt::format("expected 'temperature' to be at least 0, but got {}", o.temperature));
  if (o.topK < 0)
    throw Error(fmt::format("expected 'top-k' to be at least 0, but got {}", o.topK));
}

namespace {
/// A model in host memory.
struct HostModel {
  Gpt2Config config;
  std::vector<char> weights = {};
  std::optional<Vocabulary> vocabulary = {}; // none: tokens are bytes
};
} // namespace

/// Throws for weights that nothing can be computed with.
static void verifyFinite(const HostModel &model, const ParameterList &list, const std::string &folder) {
  const int64_t bytes = bytesOf(model.config.type);
  for (const Parameter &p : list.all())
    for (const double value : toDoubles(model.weights.data() + p.offset * bytes, model.config.type, p.count()))
      if (!std::isfinite(value))
        throw Error(fmt::format("expected finite weights in '{}', but tensor '{}' has {}", folder, p.name, value));
}

static HostModel readModel(const Pretrained &source, Type type) {
  HostModel model = {readConfig(*source.folder)};
  model.config.type = type;
  verifyWhole(source);
  model.vocabulary = vocabularyBeside(source);
  verifyTokens(model.config, model.vocabulary);
  const Network network(model.config);
  model.weights = readWeights(source.weights, network.parameters(), model.config.type);
  verifyFinite(model, network.parameters(), *source.folder);
  return model;
}

/// The model in the folder that the options name. A run that goes on may remove its newest checkpoint while it is read:
/// then there is a newer one. Where it is damaged, the error names one before it that is not.
static HostModel readNewest(const SampleOptions &options) {
  while (true) {
    const Pretrained source = modelIn(options);
    try {
      return readModel(source, options.dtype ? dtypeNamed("dtype", *options.dtype) : f32);
    } catch (const Error &error) {
      if (const std::optional<std::string> newest = newestCheckpoint(options.folder);
          newest && *newest != *source.folder)
        continue;
      const std::optional<std::string> older = wholeCheckpointBefore(*source.folder);
      if (!older)
        throw;
      throw Error(fmt::format("{}; '{}' is whole", error.what(), *older), error.fault);
    }
  }
}

void sample(const SampleOptions &options) {
  verify(options);
  const HostModel read = readNewest(options);
  const Gpt2Config &config = read.config;
  const Network network(config);
  Predictor predictor(openDevice(options.machine), network, read.weights);
  const Random random(options.seed, Stream::sampling);
  const Tokenizer tokenizer(read.vocabulary.value_or(byteVocabulary()));
  std::vector<int32_t> tokens = tokenizer.encode(options.prompt, /*specials=*/true);
  writeResult(options.prompt);
  for (int64_t i = 0; i < options.tokens; ++i) {
    const int64_t seen = std::min<int64_t>(config.context, static_cast<int64_t>(tokens.size()));
    std::vector<float> logits = predictor.logitsAfter({tokens.end() - seen, tokens.end()});
    logits.resize(tokenizer.size()); // those behind are padding
    tokens.push_back(static_cast<int32_t>(choose(logits, options.temperature, options.topK, random.uniform(i))));
    writeResult(tokenizer.decode({&tokens.back(), 1}));
  }
  writeResult("\n");
}

} // namespace kiln

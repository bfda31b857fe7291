// Choosing the next token, and the loop around it. Choosing is no arithmetic of a training step: it is done on the
// host.

#include "models/gpt2/sampler.h"
#include "models/gpt2/network.h"
#include "models/gpt2/predictor.h"
#include "models/gpt2/trained_model.h"
#include "models/tokens/tokenizer.h"
#include "runtime/Streams.h"

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

void sample(const SampleOptions &options) {
  verify(options);
  const TrainedModel read = readTrained(options.folder, options.dtype);
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

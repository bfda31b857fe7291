// Decoder options and parameter names of a GPT-2 config, and batches of random tokens.

#include "models/gpt2/network.h"
#include "models/data/batches.h"
#include "models/data/random.h"
#include "models/gpt2/config.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

/// GPT-2's initialisation: standard deviation 0.02, and 0.02 / √(2L) for projections into the residual stream.
static constexpr double deviation = 0.02;

/// Hugging Face's names. An untied head is outside of `transformer`; a tied model has no prefix.
static DecoderNames parameterNames(const Gpt2Config &c) {
  const std::string prefix = c.tied ? "" : transformerPrefix;
  const auto layer = [=](const std::string &name) {
    return LayerNames{prefix + name + ".weight", prefix + name + ".bias"};
  };
  const auto block = [=](int64_t number) {
    const auto in = [&](const char *name) { return layer(fmt::format("h.{}.{}", number, name)); };
    return BlockNames{
        in("ln_1"), {in("attn.c_attn"), in("attn.c_proj")}, in("ln_2"), {in("mlp.c_fc"), in("mlp.c_proj")}};
  };
  return {{prefix + "wte.weight", prefix + "wpe.weight"}, block, layer("ln_f"), {headWeight, "lm_head.bias"}};
}

static DecoderOptions networkOptions(const Gpt2Config &c) {
  DecoderOptions o = decoderOptions(c, c.layers, c.vocab);
  o.block.attention.linear.bias = c.form.projectionBias;
  o.block.norm = {.ddof = c.form.ddof, .epsilon = c.epsilon};
  o.block.mlp.inner = c.inner;
  o.block.order = c.form.mlpFirst ? BlockOrder::mlp_first : BlockOrder::attention_first;
  if (c.form.scalesTokens)
    o.embedding.scale = std::sqrt(static_cast<double>(c.width));
  o.head = {.tied = c.tied, .bias = c.form.headBias};
  o.attentionScale = [c](int64_t layer) { return c.attentionScale(layer); };
  o.inits = {deviation, deviation / std::sqrt(2.0 * static_cast<double>(c.layers))};
  o.inits.lecun = c.form.lecunInit;
  o.headInit = o.inits.inner(c.width);
  o.givesRanges = c.givesRanges;
  o.embedding.givesPositions = c.givesPositions;
  return o;
}

/// The config, after its checks.
static const Gpt2Config &verified(const Gpt2Config &config) {
  verify(config);
  return config;
}

Network::Network(const Gpt2Config &config)
    : DecoderNetwork(parameterNames(config), networkOptions(verified(config)), config.type, config.decayOn),
      sizes(config) {}

double Network::countFlops(const HostBatch &batch, const BatchShape &shape) const {
  return flopsOfStep(sizes, shape.sequences, shape.target, attentionShare(batch, shape));
}

nlohmann::ordered_json Network::configJson(Type saved) const {
  int64_t count = 0;
  for (const Parameter &p : parameters().all())
    count += p.count();
  return kiln::configJson(sizes, saved, /*hasMore=*/count != parameterCount(sizes));
}

HostBatch randomTokens(const Gpt2Config &config, int64_t count, uint64_t seed) {
  const Random random(seed, Stream::sampling);
  const int64_t size = count * config.context;
  std::vector<int32_t> tokens, targets;
  for (int64_t i = 0; i < size; ++i) {
    tokens.push_back(static_cast<int32_t>(random.below(config.vocab, i)));
    targets.push_back(i % 7 == 6 ? ignoredTarget : static_cast<int32_t>(random.below(config.vocab, size + i)));
  }
  return languageBatch(tokens, targets);
}

} // namespace kiln

// From a config to options and names.

#include "models/gpt2/network.h"
#include "models/gpt2/config_json.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

/// GPT-2's initialisation: 0.02, and 0.02 / √(2L) for what adds to the residual stream.
static constexpr double deviation = 0.02;

/// Hugging Face's names.
static const EmbeddingNames tables = {"wte.weight", "wpe.weight"};
static LayerNames layerNames(const std::string &layer) { return {layer + ".weight", layer + ".bias"}; }
static BlockNames blockNames(int64_t number) {
  const auto layer = [&](const char *name) { return layerNames(fmt::format("h.{}.{}", number, name)); };
  return {layer("ln_1"),
          {layer("attn.c_attn"), layer("attn.c_proj")},
          layer("ln_2"),
          {layer("mlp.c_fc"), layer("mlp.c_proj")}};
}

static DecoderOptions optionsOf(const Gpt2Config &c) {
  DecoderOptions o = {.layers = c.layers, .width = c.width, .context = c.context, .vocab = c.vocab};
  o.block.attention.heads = c.heads;
  o.block.norm.epsilon = c.epsilon;
  o.scaleOf = [c](int64_t layer) { return c.scaleOf(layer); };
  o.inits = {deviation, deviation / std::sqrt(2.0 * static_cast<double>(c.layers))};
  o.dropout = c.dropout;
  return o;
}

/// The config, once it is known to be right.
static const Gpt2Config &verified(const Gpt2Config &config) {
  verify(config);
  return config;
}

Network::Network(const Gpt2Config &config)
    : DecoderNetwork({tables, blockNames, layerNames("ln_f"), {}}, optionsOf(verified(config)), config.type,
                     DecayOn::matrices),
      sizes(config) {}

nlohmann::ordered_json Network::configJson(Type saved) const { return kiln::configJson(sizes, saved); }

} // namespace kiln

// The decoder options of a byte-level model.

#include "models/bytelm/network.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

static LayerNames layerNames(const std::string &layer) { return {layer + ".weight", layer + ".bias"}; }
static BlockNames blockNames(int64_t number) {
  const auto layer = [&](const char *name) { return layerNames(fmt::format("blocks.{}.{}", number, name)); };
  return {layer("attention_norm"),
          {layer("attention_input"), layer("attention_output")},
          layer("mlp_norm"),
          {layer("mlp_input"), layer("mlp_output")}};
}
static DecoderNames names() { return {{"bytes.weight", "positions.weight"}, blockNames, {}, layerNames("head")}; }

static DecoderOptions optionsOf(const ByteConfig &c) {
  DecoderOptions o = {.layers = c.layers, .width = c.width, .context = c.context, .vocab = ByteConfig::vocab};
  o.block.attention.heads = c.heads;
  o.block.attention.form = c.attention;
  o.block.mlp = {c.inner, Activation::relu};
  const Init table = {Init::Kind::normal, c.tables == TableInit::torch ? 1 : 0.01};
  o.embedding.tokenInit = o.embedding.positionInit = table;
  o.lastNorm = false;
  o.head = {.tied = false, .bias = true};
  if (c.linears == LinearStart::normal) {
    o.inits = {0.02, 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers))};
  } else {
    o.inits.byWidth = true;
    o.inits.xavierAttention = c.linears == LinearStart::pytorch;
  }
  o.headInit = o.inits.inner(c.width);
  o.dropout = c.dropout;
  o.smoothing = c.smoothing;
  return o;
}

/// The config, after its checks.
static const ByteConfig &verified(const ByteConfig &config) {
  verify(config);
  return config;
}

ByteNetwork::ByteNetwork(const ByteConfig &config)
    : DecoderNetwork(names(), optionsOf(verified(config)), config.type, config.decayOn), sizes(config) {}

nlohmann::ordered_json ByteNetwork::configJson(Type) const { return kiln::configJson(sizes); }

} // namespace kiln

// The encoder and decoder options of a translation model.

#include "models/translate/network.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

static DecoderNames names(const std::string &side) {
  const auto layer = [=](const std::string &name) {
    return LayerNames{side + "." + name + ".weight", side + "." + name + ".bias"};
  };
  const auto block = [=](int64_t number) {
    const auto in = [&](const char *name) { return layer(fmt::format("blocks.{}.{}", number, name)); };
    return BlockNames{in("attention_norm"), {in("attention_input"), in("attention_output")},
                      in("mlp_norm"),       {in("mlp_input"), in("mlp_output")},
                      in("cross_norm"),     {in("cross_query"), in("cross_memory"), in("cross_output")}};
  };
  return {{side + ".tokens.weight", side + ".positions.weight"}, block, layer("last_norm"), layer("head")};
}

static DecoderOptions sideOf(const TranslationConfig &c, int64_t layers, int64_t vocab) {
  DecoderOptions o = {.layers = layers, .width = c.width, .context = c.context, .vocab = vocab};
  o.block.place = c.form.norms;
  o.block.norm = c.form.norm;
  o.block.attention.heads = c.heads;
  o.block.attention.form = c.attention;
  o.block.attention.linear.bias = c.form.attentionBias;
  o.block.mlp = {c.inner, Activation::relu};
  o.lastNorm = c.form.norms == NormPlace::pre;
  o.embedding.scale = std::sqrt(static_cast<double>(c.width));
  o.embedding.positions = PositionTable::sinusoids;
  const double width = static_cast<double>(c.width);
  const bool isNormal = c.form.start == TranslationStart::normal;
  o.embedding.tokenInit = {Init::Kind::normal, isNormal                                    ? 0.02
                                               : c.form.start == TranslationStart::pytorch ? 1
                                                                                           : 1 / std::sqrt(width)};
  o.inits.byWidth = !isNormal;
  o.inits.xavierAttention = c.form.start == TranslationStart::xavier;
  o.head = {.tied = c.form.tied, .bias = c.form.headBias};
  o.headInit = o.inits.inner(c.width);
  o.smoothing = c.smoothing;
  o.dropout = c.dropout;
  return o;
}

static EncoderDecoderOptions optionsOf(const TranslationConfig &c) {
  verify(c);
  EncoderDecoderOptions o = {sideOf(c, c.encoderLayers, c.sourceVocab), sideOf(c, c.layers, c.vocab),
                             c.form.sharesTable};
  o.decoder.block.cross = true;
  return o;
}

TranslationNetwork::TranslationNetwork(const TranslationConfig &config)
    : EncoderDecoderNetwork(names("encoder"), names("decoder"), optionsOf(config), config.type, config.decayOn),
      sizes(config) {}

nlohmann::ordered_json TranslationNetwork::configJson(Type) const { return kiln::configJson(sizes); }

} // namespace kiln

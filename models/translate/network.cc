// Checks of a translation model's config, config.json, and its encoder's and decoder's options.

#include "models/translate/network.h"
#include "models/data/json.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln {

//===-- Config --------------------------------------------------------------------------------------------------===//

bool TranslationConfig::sameModel(const TranslationConfig &o) const {
  return kiln::configJson(*this) == kiln::configJson(o); // without the initialisation
}

void verify(const TranslationConfig &c) {
  expectBetween("encoder-layers", c.encoderLayers, largestSize);
  expectBetween("source vocabulary", c.sourceVocab, largestSize);
  expectBetween("vocabulary", c.vocab, largestSize);
  verifySizes(c, c.inner);
  if (c.form.sharesTable && c.sourceVocab != c.vocab)
    throw Error(fmt::format(
        "a table that source and translation share requires one tokenizer (--tokens), but got {} and {} tokens",
        c.sourceVocab, c.vocab));
  if (c.attention == AttentionForm::plain)
    throw Error("--attention plain is not supported; plain attention would be compiled for every length");
}

std::string textOf(const TranslationConfig &c) {
  return fmt::format("{} and {} layers, {} heads, width {}, inner {}, context {}, vocabularies {} and {}",
                     c.encoderLayers, c.layers, c.heads, c.width, c.inner, c.context, c.sourceVocab, c.vocab);
}

double flopsOfStep(const TranslationConfig &c, int64_t sequences, int64_t source, int64_t target) {
  const auto width = static_cast<double>(c.width), inner = static_cast<double>(c.inner);
  const double sources = static_cast<double>(sequences * source), places = static_cast<double>(sequences * target);
  const auto encoders = static_cast<double>(c.encoderLayers), decoders = static_cast<double>(c.layers);
  const double feed = 2 * width * inner, project = 4 * width * width;
  const double encoder = encoders * sources * (project + feed + 2 * width * static_cast<double>(source));
  const double own = places * (project + feed + width * static_cast<double>(target));
  const double cross = places * (project / 2 + 2 * width * static_cast<double>(source)) + sources * project / 2;
  return 6 * (encoder + decoders * (own + cross) + places * width * static_cast<double>(c.vocab));
}

nlohmann::ordered_json configJson(const TranslationConfig &c) {
  const TranslationForm &f = c.form;
  return {{"model_type", "kiln-translate"},
          {"encoder_layers", c.encoderLayers},
          {"layers", c.layers},
          {"heads", c.heads},
          {"width", c.width},
          {"inner", c.inner},
          {"context", c.context},
          {"source_vocab", c.sourceVocab},
          {"vocab", c.vocab},
          {"post_norm", f.norms == NormPlace::post},
          {"norm_ddof", f.norm.ddof},
          {"norm_epsilon", f.norm.epsilon},
          {"norm_epsilon_outside", f.norm.epsOutsideSqrt},
          {"attention_bias", f.attentionBias},
          {"shared_table", f.sharesTable},
          {"tied", f.tied},
          {"head_bias", f.headBias}};
}

TranslationConfig readTranslationConfig(const std::string &folder) {
  const JsonObject json = readJsonObject(folder + "/config.json");
  if (const std::string type = json.text("model_type"); type != "kiln-translate")
    throw Error(fmt::format("expected a model that translates in '{}', but its config.json says '{}'", folder, type));
  TranslationConfig c;
  c.encoderLayers = json.integer("encoder_layers");
  c.layers = json.integer("layers");
  c.heads = json.integer("heads");
  c.width = json.integer("width");
  c.inner = json.integer("inner");
  c.context = json.integer("context");
  c.sourceVocab = json.integer("source_vocab");
  c.vocab = json.integer("vocab");
  c.form.norms = json.truth("post_norm") ? NormPlace::post : NormPlace::pre;
  c.form.norm = {.ddof = static_cast<int>(json.integer("norm_ddof")),
                 .epsilon = json.number("norm_epsilon"),
                 .epsOutsideSqrt = json.truth("norm_epsilon_outside")};
  c.form.attentionBias = json.truth("attention_bias");
  c.form.sharesTable = json.truth("shared_table");
  c.form.tied = json.truth("tied");
  c.form.headBias = json.truth("head_bias");
  verify(c);
  return c;
}

//===-- Network -------------------------------------------------------------------------------------------------===//

static DecoderNames names(const std::string &side) {
  const auto layer = [=](const std::string &name) {
    return LayerNames{side + "." + name + ".weight", side + "." + name + ".bias"};
  };
  const auto block = [=](int64_t number) {
    const auto in = [&](const char *name) { return layer(fmt::format("blocks.{}.{}", number, name)); };
    return BlockNames{in("attention_norm"), {in("attention_input"), in("attention_output")},
                      in("mlp_norm"),       {in("mlp_input"), in("mlp_output")},
                      in("cross_norm"),     {in("cross_query"), in("cross_output"), in("cross_memory")}};
  };
  return {{side + ".tokens.weight", side + ".positions.weight"}, block, layer("last_norm"), layer("head")};
}

static DecoderOptions sideOptions(const TranslationConfig &c, int64_t layers, int64_t vocab) {
  DecoderOptions o = decoderOptions(c, layers, vocab);
  o.block.place = c.form.norms;
  o.block.norm = c.form.norm;
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
  return o;
}

static EncoderDecoderOptions networkOptions(const TranslationConfig &c) {
  verify(c);
  EncoderDecoderOptions o = {sideOptions(c, c.encoderLayers, c.sourceVocab), sideOptions(c, c.layers, c.vocab),
                             c.form.sharesTable};
  o.decoder.block.cross = true;
  return o;
}

TranslationNetwork::TranslationNetwork(const TranslationConfig &config)
    : EncoderDecoderNetwork(names("encoder"), names("decoder"), networkOptions(config), config.type, config.decayOn),
      sizes(config) {}

nlohmann::ordered_json TranslationNetwork::configJson(Type) const { return kiln::configJson(sizes); }

} // namespace kiln

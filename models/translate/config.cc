// Checks of a config, and config.json.

#include "models/translate/config.h"
#include "models/data/json.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln {

bool TranslationConfig::sameModel(const TranslationConfig &o) const {
  TranslationForm begun = form; // not stored in config.json
  begun.start = o.form.start;
  return encoderLayers == o.encoderLayers && layers == o.layers && heads == o.heads && width == o.width &&
         inner == o.inner && context == o.context && begun == o.form && sourceVocab == o.sourceVocab &&
         vocab == o.vocab;
}

void verify(const TranslationConfig &c) {
  expectBetween("encoder-layers", c.encoderLayers, largestSize);
  expectBetween("layers", c.layers, largestSize);
  expectBetween("heads", c.heads, largestSize);
  expectBetween("width", c.width, largestSize);
  expectBetween("inner", c.inner, largestSize);
  expectBetween("context", c.context, largestSize);
  expectBetween("source vocabulary", c.sourceVocab, largestSize);
  expectBetween("vocabulary", c.vocab, largestSize);
  if (c.width % c.heads != 0)
    throw Error(fmt::format("expected the number of heads to divide the width, but got {} heads and width {}", c.heads,
                            c.width));
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

} // namespace kiln

// What a run's settings, and options that say sizes, decide about a model of any kind.

#pragma once

#include "models/nn/dropout.h"
#include "models/train/settings.h"

namespace kiln {

/// The chances of dropout that the settings ask for: where one is below 0 it is the general one.
inline DropoutOptions dropoutOf(const TrainSettings &s) {
  const auto orGeneral = [&](double chance) { return chance < 0 ? s.dropout : chance; };
  return {orGeneral(s.dropoutEmbedding), orGeneral(s.dropoutResidual), s.dropoutActivation, s.dropoutAttention,
          s.dropoutKind};
}

/// The same model, with the type and all that training decides from the settings.
template <class Config> Config configured(Config config, const TrainSettings &settings) {
  config.type = settings.type;
  config.dropout = dropoutOf(settings);
  config.attention = settings.attention;
  config.decayOn = settings.decayOn;
  config.smoothing = settings.smoothing;
  return config;
}

/// The sizes that options give, in place of the model's.
template <class Config, class Options> void replaceSizes(Config &config, const Options &options) {
  config.layers = options.layers.value_or(config.layers);
  config.heads = options.heads.value_or(config.heads);
  config.width = options.width.value_or(config.width);
  config.inner = options.inner.value_or(config.inner);
  config.context = options.context.value_or(config.context);
}

/// The sizes and the form of another model, a named one, say, in place of the model's: what remains is its vocabulary,
/// and what training decides.
template <class Config> void takeSizes(Config &config, const Config &other) {
  config.layers = other.layers;
  config.heads = other.heads;
  config.width = other.width;
  config.inner = other.inner;
  config.context = other.context;
  config.form = other.form;
}

} // namespace kiln

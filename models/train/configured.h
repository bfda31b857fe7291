// Applies a run's settings and size flags to the config of any model.

#pragma once

#include "models/nn/dropout.h"
#include "models/train/settings.h"

namespace kiln {

/// The dropout rates of the settings; a rate below 0 is replaced by the general one.
inline DropoutOptions dropoutOf(const TrainSettings &s) {
  const auto orGeneral = [&](double chance) { return chance < 0 ? s.dropout : chance; };
  return {orGeneral(s.dropoutEmbedding), orGeneral(s.dropoutResidual), s.dropoutActivation, s.dropoutAttention,
          s.dropoutKind};
}

/// The config with its type and all that the settings decide.
template <class Config> Config configured(Config config, const TrainSettings &settings) {
  config.type = settings.type;
  config.dropout = dropoutOf(settings);
  config.attention = settings.attention;
  config.decayOn = settings.decayOn;
  config.smoothing = settings.smoothing;
  return config;
}

/// Replaces sizes of the config by those of the options.
template <class Config, class Options> void replaceSizes(Config &config, const Options &options) {
  config.layers = options.layers.value_or(config.layers);
  config.heads = options.heads.value_or(config.heads);
  config.width = options.width.value_or(config.width);
  config.inner = options.inner.value_or(config.inner);
  config.context = options.context.value_or(config.context);
}

/// Takes sizes and form from another config, such as a preset's. Vocabulary and training settings stay.
template <class Config> void takeSizes(Config &config, const Config &other) {
  config.layers = other.layers;
  config.heads = other.heads;
  config.width = other.width;
  config.inner = other.inner;
  config.context = other.context;
  config.form = other.form;
}

} // namespace kiln

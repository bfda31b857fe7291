// What a run's settings decide about a model of any kind.

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

} // namespace kiln

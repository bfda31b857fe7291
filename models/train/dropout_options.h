// From a run's settings to the chances of a model's sites of dropout.

#pragma once

#include "models/nn/dropout.h"
#include "models/train/settings.h"

namespace kiln {

/// Those that the settings ask for: where one is below 0 it is the general one.
inline DropoutOptions dropoutOf(const TrainSettings &s) {
  const auto orGeneral = [&](double chance) { return chance < 0 ? s.dropout : chance; };
  return {orGeneral(s.dropoutEmbedding), orGeneral(s.dropoutResidual), s.dropoutActivation, s.dropoutAttention,
          s.dropoutKind};
}

} // namespace kiln

// A trained model that translates: each source is read once, and a translation grows by the likeliest token each time,
// with a cache of what it has so far.

#pragma once

#include "models/generate/generator.h"
#include "models/translate/network.h"
#include "models/translate/pair_data.h"

namespace kiln {

class Translator {
public:
  /// `weights` is the flat buffer of the network's parameters, on the device. It and the network must outlive it.
  Translator(std::shared_ptr<Device> device, const TranslationNetwork &network, const TensorRef &weights,
             const PairTokenizers &tokenizers)
      : device(std::move(device)), network(network), weights(weights), tokenizers(tokenizers),
        marks(marksOf(tokenizers)) {}

  /// A translation of each line, all of them side by side; of one without tokens none. What is longer than the model's
  /// context is cut.
  std::vector<std::string> translate(std::span<const std::string> lines) const;

private:
  std::shared_ptr<Device> device;
  const TranslationNetwork &network;
  TensorRef weights;
  const PairTokenizers &tokenizers;
  PairMarks marks;
};

} // namespace kiln

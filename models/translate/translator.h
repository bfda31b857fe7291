// Greedy translation with a trained model: each source is encoded once, and the target is generated with a KV cache.

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

  /// A translation of each line, in one batch; an empty one for a line without tokens. Lines longer than the model's
  /// context are cut.
  std::vector<std::string> translate(std::span<const std::string> lines) const;

private:
  std::shared_ptr<Device> device;
  const TranslationNetwork &network;
  TensorRef weights;
  const PairTokenizers &tokenizers;
  PairMarks marks;
};

} // namespace kiln

// A translation model as layers: an encoder of sources, and a decoder with cross-attention. Sinusoidal positions are
// added to the token rows times √width.

#pragma once

#include "models/nn/encoder_decoder.h"
#include "models/translate/config.h"

namespace kiln {

class TranslationNetwork : public EncoderDecoderNetwork {
public:
  /// Throws Error for an invalid config.
  explicit TranslationNetwork(const TranslationConfig &config);

  const TranslationConfig &config() const { return sizes; }
  double flops(const BatchShape &shape) const override {
    return flopsOfStep(sizes, shape.sequences, shape.source, shape.target);
  }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

private:
  TranslationConfig sizes;
};

} // namespace kiln

// A byte-level model as layers. Each byte of a sequence is predicted from those before it: inputs are shifted right by
// one, and position 0 gets a vector of zeros. It has no final norm, ReLU in the MLP, and an untied head with a bias.

#pragma once

#include "models/bytelm/config.h"
#include "models/nn/decoder_network.h"

namespace kiln {

class ByteNetwork : public DecoderNetwork {
public:
  explicit ByteNetwork(const ByteConfig &config);

  const ByteConfig &config() const { return sizes; }
  double flops(const BatchShape &shape) const override { return flopsOfStep(sizes, shape.sequences, shape.target); }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

private:
  ByteConfig sizes;
};

} // namespace kiln

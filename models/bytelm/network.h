// A model of bytes as layers: each byte is predicted from those before it in its sequence, the first from none. A
// sequence's bytes stand one place on, behind a vector of zeros; there is no norm behind the last block, relu in the
// feed-forward layers, and a head of its own with a bias.

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

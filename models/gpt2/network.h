// GPT-2 as a decoder: its options, and Hugging Face's names of its parameters.

#pragma once

#include "models/data/host_batch.h"
#include "models/gpt2/config.h"
#include "models/nn/decoder.h"

namespace kiln {

/// The prefix of Hugging Face's names of all parameters except the head, in models with a head, and the head's name.
inline const std::string transformerPrefix = "transformer.", headWeight = "lm_head.weight";

class Network : public DecoderNetwork {
public:
  explicit Network(const Gpt2Config &config);

  const Gpt2Config &config() const { return sizes; }
  double flops(const BatchShape &shape) const override { return flopsOfStep(sizes, shape.sequences, shape.target); }
  double countFlops(const HostBatch &batch, const BatchShape &shape) const override;
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

private:
  Gpt2Config sizes;
};

/// `count` sequences of random tokens with targets, of which every seventh is missing.
HostBatch randomTokens(const Gpt2Config &config, int64_t count, uint64_t seed);

} // namespace kiln

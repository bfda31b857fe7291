// Prediction without a cache: the logits of the token after given ones.

#pragma once

#include "models/nn/decoder_network.h"
#include "runtime/Compile.h"

namespace kiln {

class Predictor {
public:
  /// `weights` is the flat buffer of the network's parameters. The network must outlive it.
  Predictor(std::shared_ptr<Device> device, const DecoderNetwork &network, const std::vector<char> &weights);
  /// As above, with weights on the device, which may change there.
  Predictor(std::shared_ptr<Device> device, const DecoderNetwork &network, const TensorRef &weights);

  /// Logits (vocab) of the token after `tokens`, 1 … context of them.
  std::vector<float> logitsAfter(const std::vector<int32_t> &tokens);

private:
  Predictor(const std::shared_ptr<Device> &device, const DecoderNetwork &network, Tensor weights);
  /// A plan for the logits after row `row`.
  Plan plan(Arena &placed, int64_t row) const;

  std::shared_ptr<Device> device;
  const DecoderNetwork &network;
  std::optional<Tensor> own;
  TensorRef value;
  Tensor tokens, logits, arena, workspace;
  ArenaPlan places;
};

} // namespace kiln

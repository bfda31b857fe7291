// A language model on a device that predicts: the logits of the token after those that it is given.

#pragma once

#include "models/nn/decoder_network.h"
#include "runtime/Compile.h"

namespace kiln {

class Predictor {
public:
  /// `weights` is the flat buffer of the network's parameters. The network must outlive it.
  Predictor(std::shared_ptr<Device> device, const DecoderNetwork &network, const std::vector<char> &weights);
  /// The same with weights that are on the device already, and may change there.
  Predictor(std::shared_ptr<Device> device, const DecoderNetwork &network, const TensorRef &weights);

  /// Logits (vocab) of the token after `tokens`, of which there are 1 … context.
  std::vector<float> logitsAfter(const std::vector<int32_t> &tokens);

private:
  Predictor(const std::shared_ptr<Device> &device, const DecoderNetwork &network, Tensor weights);
  /// Logits after row `row`.
  Plan plan(Arena &placed, int64_t row) const;

  std::shared_ptr<Device> device;
  const DecoderNetwork &network;
  std::optional<Tensor> own;
  TensorRef value;
  Tensor tokens, logits, arena, workspace;
  ArenaPlan places;
};

} // namespace kiln

// Parameters placed, and tokens alone as what the layers are given.

#include "models/nn/decoder_network.h"

namespace kiln {

DecoderNetwork::DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type)
    : element(type), decoder(list, names, options) {}

DecoderNetwork::DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type, DecayOn decayOn)
    : DecoderNetwork(names, options, type) {
  list.place(decayOn);
}

TensorRef DecoderNetwork::hidden(Build &b, const TensorRef &tokens, int64_t time) const {
  return decoder.hidden(b, [&](const std::string &) -> const TensorRef & { return tokens; }, tokens.count(), time);
}

Tensor uploaded(const std::shared_ptr<Device> &device, const DecoderNetwork &network,
                const std::vector<char> &weights) {
  Tensor value(device, network.type(), {network.parameters().count()});
  value.upload(weights.data(), std::ssize(weights));
  return value;
}

} // namespace kiln

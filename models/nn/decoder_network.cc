// A decoder as a model: its parameters, and tokens as its only input.

#include "models/nn/decoder_network.h"

#include <algorithm>

namespace kiln {

DecoderNetwork::DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type)
    : element(type), decoder(list, names, options) {}

DecoderNetwork::DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type, DecayOn decayOn)
    : DecoderNetwork(names, options, type) {
  list.place(decayOn);
}

double DecoderNetwork::attentionShare(const HostBatch &batch, const BatchShape &shape) const {
  const auto ranges = batch.find("ranges");
  if (ranges == batch.end())
    return 1;
  double squares = 0;
  const std::vector<int32_t> seen = ranges->second.numbers<int32_t>();
  for (size_t i = 0; i < seen.size(); i += 2) // n² is the sum of the first n odd numbers
    squares += std::max(2 * (seen[i + 1] - seen[i]) - 1, 0);
  return squares / (static_cast<double>(shape.targets()) * static_cast<double>(shape.target));
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

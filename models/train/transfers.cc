// Copies between host and device, with checked sizes: weights and moments of a checkpoint, gradients, a micro-batch's
// inputs, and the dropout table.

#include "models/train/trainer.h"

#include <fmt/format.h>

namespace kiln {

void Trainer::uploadWeights(const std::vector<char> &values) {
  const int64_t count = model.parameters().count();
  if (std::ssize(values) != count * bytesOf(keptType()))
    throw Error(fmt::format("expected {} bytes of weights, but got {}", count * bytesOf(keptType()), values.size()),
                Fault::internal);
  sink()(FlatBuffer::values, 0, count, values.data());
}

void Trainer::upload(const HostBuffers &host) {
  uploadWeights(host.values);
  sink()(FlatBuffer::first, 0, std::ssize(host.first), host.first.data());
  sink()(FlatBuffer::second, 0, std::ssize(host.second), host.second.data());
}

HostBuffers Trainer::download() const {
  const int64_t count = model.parameters().count();
  HostBuffers host{.values = std::vector<char>(count * bytesOf(keptType())),
                   .first = std::vector<float>(count),
                   .second = std::vector<float>(count),
                   .type = keptType()};
  share([&](const BufferSource &from) {
    from.read(FlatBuffer::values, 0, count, host.values.data());
    from.read(FlatBuffer::first, 0, count, host.first.data());
    from.read(FlatBuffer::second, 0, count, host.second.data());
  });
  return host;
}

std::vector<float> Trainer::gradients() const {
  const TensorRef from = optimizer.gradients();
  std::vector<char> bytes(from.bytes());
  device->download(bytes.data(), from.data, from.bytes());
  const std::vector<double> all = toDoubles(bytes.data(), from.type, from.count());
  return {all.begin(), all.end()};
}

void Trainer::uploadInputs(const MicroBatch &to, const HostBatch &batch) {
  for (const auto &[name, array] : batch) {
    const auto place = to.inputs.find(name);
    if (place == to.inputs.end() || place->second.type != array.type())
      throw Error(fmt::format("expected an input of the model, but got '{}' of {}", name, nameOf(array.type())),
                  Fault::internal);
    if (const int64_t bytes = place->second.bytes(); std::ssize(array.bytes()) != bytes)
      throw Error(fmt::format("expected {} bytes of input '{}', but got {}", bytes, name, array.bytes().size()),
                  Fault::internal);
    device->upload(place->second.data, array.bytes().data(), std::ssize(array.bytes()));
  }
}

void Trainer::uploadSites(int64_t first) {
  if (!sites)
    return;
  const Random random(settings.seed, Stream::dropout);
  std::vector<int64_t> numbers;
  for (int64_t site = 0; site < model.parameters().sites(); ++site) {
    const std::array<uint32_t, 4> key = random.block(static_cast<uint64_t>(draw), static_cast<uint32_t>(site));
    numbers.push_back(static_cast<int64_t>(uint64_t{key[0]} << 32 | key[1]));
    numbers.push_back(first);
    numbers.resize((site + 1) * Build::siteNumbers);
  }
  sites->upload(numbers.data(), sites->bytes());
}

} // namespace kiln

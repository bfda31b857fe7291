// One sequence, padded to the context. A causal model's output at a token does not depend on later ones.

#include "models/generate/predictor.h"
#include "models/train/trainer.h"

#include <algorithm>

namespace kiln {

Predictor::Predictor(std::shared_ptr<Device> device, const DecoderNetwork &network, const std::vector<char> &weights)
    : Predictor(device, network, uploaded(device, network, weights)) {}

Predictor::Predictor(const std::shared_ptr<Device> &device, const DecoderNetwork &network, Tensor weights)
    : Predictor(device, network, weights.ref()) {
  own = std::move(weights);
}

Predictor::Predictor(std::shared_ptr<Device> opened, const DecoderNetwork &network, const TensorRef &weights)
    : device(std::move(opened)), network(network), value(weights), tokens(device, i32, {network.context()}),
      logits(device, network.type(), {1, network.vocab()}) {
  Arena measured;
  const Plan any = plan(measured, 0);
  places = measured.plan();
  arena = Tensor(device, i8, {places.bytes});
  workspace = Tensor(device, i8, {any.workspaceBytes});
}

Plan Predictor::plan(Arena &placed, int64_t row) const {
  Target target = device->target();
  target.precision = Precision::ieee; // one token at a time: a lower precision gains nothing
  Build b{target, placed, network.parameters(), ParameterBuffers{value, value}, network.type()};
  const TensorRef hidden = network.hidden(b, tokens, network.context());
  network.logits(b, hidden.slice(0, row, 1), logits);
  return std::move(b.plan);
}

std::vector<float> Predictor::logitsAfter(const std::vector<int32_t> &given) {
  const int64_t context = network.context();
  if (given.empty() || std::ssize(given) > context)
    throw Error("expected 1 to " + std::to_string(context) + " tokens, but got " + std::to_string(given.size()));
  std::vector<int32_t> padded = given;
  padded.resize(context, 0);
  uploadAll(tokens, padded);
  Arena placed(places, arena.data());
  run(*device, plan(placed, std::ssize(given) - 1), workspace);
  device->synchronize();
  return logits.downloadFloats();
}

} // namespace kiln

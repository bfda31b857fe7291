// The launches of an evaluation, made ready once.

#include "models/gpt2/evaluator.h"
#include "models/train/trainer.h"

namespace kiln {

Evaluator::Evaluator(std::shared_ptr<Device> opened, const Network &network, const std::vector<char> &weights,
                     int64_t sequences)
    : device(std::move(opened)), network(network), shape(network.shape(sequences)),
      value(device, network.type(), {network.parameters().count()}), tokens(device, i32, {shape.targets()}),
      targets(device, i32, {shape.targets()}), losses(device, f32, {shape.targets()}),
      hits(device, f32, {shape.targets()}) {
  value.upload(weights.data(), std::ssize(weights));
  Arena measured;
  workspace = Tensor(device, i8, {plan(measured).workspaceBytes});
  const ArenaPlan places = measured.plan();
  arena = Tensor(device, i8, {places.bytes});
  Arena placed(places, arena.data());
  ready = prepare(*device, plan(placed), workspace);
}

Plan Evaluator::plan(Arena &placed) const {
  Target target = device->target();
  target.precision = Precision::ieee; // scores of endings may be close
  Build b{target, placed, network.parameters(), ParameterBuffers{value, value}, network.type()};
  network.losses(
      b, {.shape = shape, .inputs = {{"tokens", tokens}, {"targets", targets}}, .losses = losses, .hits = hits.ref()});
  return std::move(b.plan);
}

Evaluator::Result Evaluator::evaluate(const HostBatch &batch) {
  tokens.upload(batch.at("tokens").bytes().data(), tokens.bytes());
  targets.upload(batch.at("targets").bytes().data(), targets.bytes());
  ready.run();
  device->synchronize();
  return {losses.downloadFloats(), hits.downloadFloats()};
}

} // namespace kiln

// The launches of an evaluation, prepared once.

#include "models/gpt2/evaluator.h"
#include "models/train/trainer.h"

namespace kiln {

Evaluator::Evaluator(std::shared_ptr<Device> opened, const Network &network, const std::vector<char> &weights,
                     int64_t sequences)
    : device(std::move(opened)), network(network), shape(network.shape(sequences)),
      value(device, network.type(), {network.parameters().count()}), losses(device, f32, {shape.targets()}),
      hits(device, f32, {shape.targets()}) {
  for (const Input &input : network.inputs(shape))
    inputs.emplace(input.name, Tensor(device, input.type, input.extents));
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
  target.precision = Precision::ieee; // scores of endings may differ little
  Build b{target, placed, network.parameters(), ParameterBuffers{value, value}, network.type()};
  MicroBatch batch = {.shape = shape, .inputs = {}, .losses = losses, .hits = hits.ref()};
  for (const auto &[name, input] : inputs)
    batch.inputs.emplace(name, input.ref());
  network.losses(b, batch);
  return std::move(b.plan);
}

Evaluator::Result Evaluator::evaluate(const HostBatch &batch) {
  for (const auto &[name, array] : batch)
    inputs.at(name).upload(array.bytes().data(), std::ssize(array.bytes()));
  ready.run();
  device->synchronize();
  return {losses.downloadFloats(), hits.downloadFloats()};
}

} // namespace kiln

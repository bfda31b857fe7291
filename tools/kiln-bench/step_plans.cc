// Plans of a training step.

#include "tools/kiln-bench/step_plans.h"

#include "kernels/adamw.h"
#include "kernels/sum.h"
#include "models/train/memory.h"

using namespace kiln;

void *bench::imaginedRegion(int region, int64_t) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(region) << 40);
}

Gpt2Config bench::config124M(Type type, int64_t layers, int64_t context) {
  Gpt2Config config = {.layers = layers, .heads = 12, .width = 768, .context = context, .vocab = 50257};
  config.type = type;
  return config;
}

Gpt2Config bench::tinyModel(Type type) { return {.layers = 1, .heads = 2, .width = 64, .context = 32, .type = type}; }

Plan bench::stepPlan(const Target &target, const Model &model, const TrainSettings &settings, const Regions &regions,
                     bool evaluates) {
  const auto tensor = [&](int region, Type type, const Shape &extents) {
    TensorRef dense = TensorRef::dense(nullptr, type, extents);
    dense.data = regions(region, dense.bytes());
    return dense;
  };
  const BatchShape shape = model.shape(settings.batch);
  const MemoryPlan memory = planMemory(target, model, shape, settings);
  const BufferTypes types = bufferTypes(model, settings);
  const Shape count = {model.parameters().count()};
  const ParameterBuffers buffers = {tensor(2, types.weights, count), tensor(3, types.gradients, count)};
  const TensorRef record = tensor(recordRegion, f32, {stepFields});
  const auto field = [&](StepField name) { return record.slice(0, static_cast<int64_t>(name), 1); };
  MicroBatch batch = {shape, {}, tensor(5, f32, {shape.targets()})};
  for (const Input &input : model.inputs(shape))
    batch.inputs.emplace(input.name, tensor(10 + static_cast<int>(batch.inputs.size()), input.type, input.extents));
  void *const activations = regions(6, memory.activations);
  Plan plan;
  for (const bool accumulate : {false, true}) {
    if (accumulate && settings.accumulate == 1)
      continue;
    Arena arena(memory.training, activations);
    Build build{target, arena, model.parameters(), buffers, model.type(), accumulate};
    build.lossWeight = field(StepField::weight);
    model.gradient(build, batch);
    plan += build.plan;
    plan += planTotal(target, batch.losses, field(StepField::loss), 1, /*accumulate=*/true);
  }
  if (evaluates) {
    Arena arena(memory.evaluation, activations);
    Build build{target, arena, model.parameters(), buffers, model.type()};
    model.losses(build, batch);
    plan += build.plan;
    plan += planTotal(target, batch.losses, field(StepField::loss));
  }
  plan += planGradNorm(target, buffers.gradients, record);
  const TensorRef kept = types.hasMasters() ? tensor(7, types.kept, count) : buffers.values;
  plan += planAdamW(target, kept, buffers.gradients, tensor(8, f32, count), tensor(9, f32, count), record,
                    {.decayed = model.parameters().decayedCount(), .rounding = settings.rounding},
                    types.hasMasters() ? std::optional(buffers.values) : std::nullopt);
  return plan;
}

Plan bench::stepPlans(const Target &target, const Model &model, int64_t sequences) {
  Plan plan = stepPlan(target, model, {.batch = sequences}, imaginedRegion);
  plan += stepPlan(target, model, {.batch = sequences, .accumulate = 2}, imaginedRegion);
  if (model.type() != f32)
    plan += stepPlan(target, model, {.batch = sequences, .master = false, .rounding = WeightRounding::stochastic},
                     imaginedRegion);
  return plan;
}

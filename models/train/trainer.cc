// Allocation, the plans of a step, and running them.

#include "models/train/trainer.h"
#include "kernels/sum.h"
#include "models/train/memory.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

/// The device's target with the precision that the settings ask for.
static Target targetOf(const Device &device, const TrainSettings &settings) {
  Target target = device.target();
  target.precision = settings.precision;
  return target;
}

Trainer::Trainer(std::shared_ptr<Device> opened, const Model &model, const TrainSettings &s)
    : Trainer(std::move(opened), model, s, model.shape(s.batch)) {}

Trainer::Trainer(std::shared_ptr<Device> opened, const Model &model, const TrainSettings &s, const BatchShape &shape)
    : device(std::move(opened)), target(targetOf(*device, s)), model(model), settings(s), types(bufferTypes(model, s)),
      scale(firstLossScale(model.type(), s)), value(device, types.weights, {model.parameters().count()}),
      gradient(device, types.gradients, {model.parameters().count()}), first(device, f32, {model.parameters().count()}),
      second(device, f32, {model.parameters().count()}), losses(device, f32, {shape.targets()}),
      hits(device, f32, {shape.targets()}), sum(device, f32, {1}), hitSum(device, f32, {1}),
      record(device, f32, {stepFields}) {
  adamw = {.beta1 = s.beta1,
           .beta2 = s.beta2,
           .epsilon = s.epsilon,
           .decay = s.decay,
           .decayed = model.parameters().decayedCount(),
           .rounding = s.rounding,
           .seed = s.seed};
  if (types.hasMasters())
    master.emplace(device, types.kept, Shape{model.parameters().count()});
  for (const Input &input : model.inputs(shape))
    inputs.emplace(input.name, Tensor(device, input.type, input.extents));
  if (const int64_t count = model.parameters().sites())
    sites.emplace(device, i64, Shape{count, 2});
  refs = {shape, {inputs.begin(), inputs.end()}, losses};
  memory = planMemory(target, model, shape, s);
  hits.fillZero(); // a model need not tell them
  arena = Tensor(device, i8, {memory.activations});
  workspace = Tensor(device, i8, {memory.workspace});
}

Plan Trainer::planGradient(const ArenaPlan &places, bool adds) const {
  Arena placed(places, arena.data());
  Build b{target, placed, model.parameters(), ParameterBuffers{value, gradient}, model.type(), adds};
  b.recompute = settings.recompute;
  b.lossChunks = settings.lossChunks;
  b.lossWeight = field(StepField::weight);
  if (sites)
    b.sites = sites->ref();
  model.gradient(b, refs);
  const Scope scope(b, "loss");
  b.plan +=
      planTotal(target, losses, field(StepField::loss), 1.0f / static_cast<float>(losses.count()), /*accumulate=*/true);
  return std::move(b.plan);
}

Plan Trainer::planUpdate() const {
  Plan plan = labelled(planGradNorm(target, gradient, record), "gradient norm");
  plan += labelled(master ? planAdamW(target, *master, gradient, first, second, record, adamw, value.ref())
                          : planAdamW(target, value, gradient, first, second, record, adamw),
                   "update");
  return plan;
}

Plan Trainer::planEvaluation() const {
  Arena placed(memory.evaluation, arena.data());
  Build b{target, placed, model.parameters(), ParameterBuffers{value, gradient}, model.type()};
  b.lossChunks = settings.lossChunks;
  MicroBatch batch = refs;
  batch.hits = hits.ref();
  model.losses(b, batch);
  b.plan += planTotal(target, losses, sum);
  b.plan += planTotal(target, hits, hitSum);
  return std::move(b.plan);
}

/// Elements that are converted at a time.
static constexpr int64_t converted = int64_t{1} << 16;

void Trainer::initialize(uint64_t seed) {
  const Random random(seed, Stream::weights);
  const BufferSink to = sink();
  for (size_t i = 0; i < model.parameters().all().size(); ++i) {
    const Parameter &p = model.parameters()[static_cast<int>(i)];
    const std::vector<float> begun = firstNumbers(p, random, static_cast<uint32_t>(i));
    std::vector<char> part(std::min(converted, p.count()) * bytesOf(types.kept));
    for (int64_t k = 0; k < p.count(); k += converted) {
      const int64_t count = std::min(converted, p.count() - k);
      fromDoubles({begun.begin() + k, begun.begin() + k + count}, types.kept, part.data());
      to(FlatBuffer::values, p.offset + k, count, part.data());
    }
  }
  first.fillZero();
  second.fillZero();
}

BufferSink Trainer::sink() {
  return [this](FlatBuffer which, int64_t begin, int64_t count, const void *from) {
    const auto put = [&](Tensor &to, int64_t at, int64_t number, const void *data) {
      const int64_t size = bytesOf(to.type());
      device->upload(static_cast<char *>(to.data()) + at * size, data, number * size);
    };
    if (which != FlatBuffer::values)
      return put(which == FlatBuffer::first ? first : second, begin, count, from);
    put(master ? *master : value, begin, count, from);
    if (!master)
      return;
    std::vector<char> narrow(std::min(converted, count) * bytesOf(types.weights));
    for (int64_t k = 0; k < count; k += converted) {
      const int64_t number = std::min(converted, count - k);
      const char *const wide = static_cast<const char *>(from) + k * bytesOf(types.kept);
      fromDoubles(toDoubles(wide, types.kept, number), types.weights, narrow.data());
      put(value, begin + k, number, narrow.data());
    }
  };
}

void Trainer::uploadWeights(const std::vector<char> &values) {
  if (std::ssize(values) != value.count() * bytesOf(types.kept))
    throw Error(
        fmt::format("expected {} bytes of weights, but got {}", value.count() * bytesOf(types.kept), values.size()),
        Fault::internal);
  sink()(FlatBuffer::values, 0, value.count(), values.data());
}

void Trainer::upload(const HostBuffers &host) {
  uploadWeights(host.values);
  first.uploadFloats(host.first);
  second.uploadFloats(host.second);
}

HostBuffers Trainer::download() const {
  const Tensor &kept = master ? *master : value;
  HostBuffers host{.type = types.kept};
  host.values.resize(kept.bytes());
  kept.download(host.values.data(), kept.bytes());
  host.first = first.downloadFloats();
  host.second = second.downloadFloats();
  return host;
}

BufferSource Trainer::source() const {
  return {types.kept, [this](FlatBuffer which, int64_t begin, int64_t count, void *to) {
            const Tensor &from = which == FlatBuffer::first    ? first
                                 : which == FlatBuffer::second ? second
                                 : master                      ? *master
                                                               : value;
            const int64_t size = bytesOf(from.type());
            device->download(to, static_cast<const char *>(from.data()) + begin * size, count * size);
          }};
}

void uploadAll(Tensor &to, const std::vector<int32_t> &from) {
  to.upload(from.data(), static_cast<int64_t>(from.size() * sizeof(int32_t)));
}

void Trainer::uploadInputs(const HostBatch &batch) {
  for (const auto &[name, array] : batch) {
    const auto place = inputs.find(name);
    if (place == inputs.end() || place->second.type() != array.type())
      throw Error(fmt::format("expected an input of the model, but got '{}' of {}", name, nameOf(array.type())),
                  Fault::internal);
    place->second.upload(array.bytes().data(), std::ssize(array.bytes()));
  }
}

void Trainer::uploadSites(int64_t micro) {
  if (!sites)
    return;
  const Random random(settings.seed, Stream::dropout);
  std::vector<int64_t> numbers;
  for (int64_t site = 0; site < model.parameters().sites(); ++site) {
    const std::array<uint32_t, 4> key = random.block(static_cast<uint64_t>(number), static_cast<uint32_t>(site));
    numbers.push_back(static_cast<int64_t>(uint64_t{key[0]} << 32 | key[1]));
    numbers.push_back(micro * refs.shape.sequences);
  }
  sites->upload(numbers.data(), sites->bytes());
}

void Trainer::prepare() {
  if (step)
    return;
  const Plan first = planGradient(memory.training, false),
             later = settings.accumulate > 1 ? planGradient(memory.training, true) : Plan(), update = planUpdate(),
             evaluation = planEvaluation();
  Plan whole = first; // together, so that their kernels are compiled side by side
  whole += later;
  whole += update;
  whole += evaluation;
  kiln::prepare(*device, whole, workspace);
  step = Step{ready(first), ready(later), ready(update), ready(evaluation)};
}

void Trainer::beginStep(double rate, int64_t number, std::optional<int64_t> given) {
  this->number = number;
  targets = given.value_or(losses.count() * settings.accumulate);
  if (targets == 0)
    throw Error(fmt::format("expected targets in step {}, but all are missing", number));
  const StepRecord host = recordOf(adamw, {.rate = rate,
                                           .step = number,
                                           .clip = settings.clip > 0 ? settings.clip : AdamWStep().clip,
                                           .lossScale = scale.scale,
                                           .targets = targets,
                                           .good = scale.good,
                                           .window = scalesLoss() ? settings.scaleWindow : 0});
  record.upload(host.numbers.data(), record.bytes());
}

void Trainer::addGradient(const HostBatch &batch, int64_t micro) {
  HostBatch whole = batch;
  model.derive(whole, refs.shape);
  uploadInputs(whole);
  uploadSites(micro);
  prepare();
  (micro == 0 ? step->firstMicro : step->laterMicro).run();
}

StepResult Trainer::update() {
  prepare();
  step->update.run();
  device->synchronize();
  StepRecord host;
  record.download(host.numbers.data(), record.bytes());
  // The sum of the micro-batches' means, had they all the targets that they have room for.
  const float full = static_cast<float>(std::max<int64_t>(targets, 1)) / static_cast<float>(losses.count());
  const float loss = host[StepField::loss] * (1.0f / full);
  const StepResult result = {loss, host[StepField::norm], host[StepField::applied] != 0, scale.scale};
  if (scalesLoss())
    scale = {host[StepField::scale], static_cast<int64_t>(host[StepField::good])};
  return result;
}

std::vector<Trainer::NamedLaunch> Trainer::launches() {
  Plan whole = planGradient(memory.training, false);
  whole += planUpdate();
  std::vector<NamedLaunch> result;
  for (const Launch &launch : whole.launches)
    result.push_back(
        {launch.label, launch.kernel->name, ready({.launches = {launch}, .workspaceBytes = whole.workspaceBytes})});
  return result;
}

Trainer::Sums Trainer::sums(const HostBatch &batch) {
  uploadInputs(batch);
  prepare();
  step->evaluation.run();
  device->synchronize();
  return {sum.downloadFloats()[0], hitSum.downloadFloats()[0]};
}

} // namespace kiln

// Allocates buffers, plans a step and runs it; transfers.cc copies between the host and these buffers.

#include "models/train/trainer.h"
#include "kernels/attention.h"
#include "kernels/sum.h"
#include "models/nn/build.h"
#include "models/train/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace kiln {

//===-- Shapes --------------------------------------------------------------------------------------------------===//

/// The largest number of targets of a shape.
static int64_t mostTargets(const std::vector<BatchShape> &shapes) {
  int64_t most = 0;
  for (const BatchShape &shape : shapes)
    most = std::max(most, shape.targets());
  return most;
}

/// One representative of each class of shapes for which plans on `target` pick equal configs, with this many loss
/// chunks. Their kernels serve all shapes. Shapes of one class have equal buckets: of their numbers of rows, including
/// those of loss chunks, and of their lengths.
static std::vector<BatchShape> oneOfEachKind(const std::vector<BatchShape> &shapes, const Target &target,
                                             int64_t lossChunks) {
  std::map<std::array<int64_t, 7>, BatchShape> kinds;
  for (const BatchShape &shape : shapes) {
    auto chunks = cutLossRows(target, shape.targets(), lossChunks);
    std::erase_if(chunks, [](const auto &chunk) { return chunk.second == 0; });
    kinds.emplace(std::array{target.bucket(shape.targets()), target.bucket(shape.sources()),
                             target.lengthBucket(shape.target), target.lengthBucket(shape.source),
                             target.bucket(chunks.front().second), target.bucket(chunks.back().second),
                             std::min<int64_t>(std::ssize(chunks), 2)},
                  shape);
  }
  std::vector<BatchShape> one;
  for (const auto &[kind, shape] : kinds)
    one.push_back(shape);
  return one;
}

//===-- The trainer ---------------------------------------------------------------------------------------------===//

/// Number of shapes whose prepared launches are cached.
static constexpr size_t mostReady = 256;

Target chooseTarget(const Device &device, const TrainSettings &settings, size_t shapes) {
  Target target = device.target();
  target.precision = settings.precision;
  target.elastic = shapes > 1;
  target.minRows = target.visit([](const CpuFacts &) { return 1; }, [](const GpuFacts &) { return 1024; });
  return target;
}

Trainer::Trainer(std::shared_ptr<Device> opened, const Model &model, const TrainSettings &s)
    : Trainer(std::move(opened), model, s, model.shape(s.batch)) {}

Trainer::Trainer(std::shared_ptr<Device> opened, const Model &model, const TrainSettings &s,
                 const std::vector<BatchShape> &given, std::shared_ptr<Collective> together)
    : device(std::move(opened)), target(chooseTarget(*device, s, given.size())), model(model), settings(s),
      shapes(given), ranks(std::move(together)), scale(firstLossScale(model.type(), s)),
      losses(device, f32, {mostTargets(shapes)}), hits(device, f32, {mostTargets(shapes)}), sum(device, f32, {1}),
      hitSum(device, f32, {1}), record(device, f32, {stepFields}),
      optimizer(device, target, model, s, record, static_cast<double>(losses.count()), ranks) {
  std::map<std::string, Input> largest;
  for (const BatchShape &shape : shapes)
    for (Input &input : model.inputs(shape)) {
      const int64_t count = TensorRef::dense(nullptr, input.type, input.extents).count();
      Input &most = largest[input.name];
      if (most.extents.empty() || most.extents[0] < count)
        most = {input.name, input.type, {count}};
    }
  for (const auto &[name, input] : largest)
    inputs.emplace(name, Tensor(device, input.type, input.extents));
  if (const int64_t count = model.parameters().sites())
    sites.emplace(device, i64, Shape{count, Build::siteNumbers});
  memory = planMemory(target, model, shapes, s, ranks->size());
  hits.fillZero(); // a model need not write them
  arena = Tensor(device, i8, {memory.activations});
  workspaces.emplace_back(device, i8, Shape{memory.workspace});
}

MicroBatch Trainer::allocateBatch(const BatchShape &shape) const {
  MicroBatch batch = {shape, {}, losses.ref().slice(0, 0, shape.targets())};
  for (const Input &input : model.inputs(shape))
    batch.inputs.emplace(input.name, TensorRef::dense(inputs.at(input.name).data(), input.type, input.extents));
  return batch;
}

Plan Trainer::planGradient(const MicroBatch &batch, bool adds) const {
  Arena placed(memory.training, arena.data());
  Build b{target, placed, model.parameters(), optimizer.buffers(), model.type(), adds};
  b.recompute = settings.recompute;
  b.lossChunks = settings.lossChunks;
  b.lossWeight = field(StepField::weight);
  if (sites)
    b.sites = sites->ref();
  model.gradient(b, batch);
  const LaunchScope scope(b, "loss");
  b.plan += planTotal(target, batch.losses, field(StepField::loss), 1.0f / static_cast<float>(losses.count()),
                      /*accumulate=*/true);
  return std::move(b.plan);
}

Plan Trainer::planEvaluation(const MicroBatch &given) const {
  Arena placed(memory.evaluation, arena.data());
  Build b{target, placed, model.parameters(), optimizer.buffers(), model.type()};
  b.lossChunks = settings.lossChunks;
  MicroBatch batch = given;
  batch.hits = hits.ref().slice(0, 0, batch.shape.targets());
  model.losses(b, batch);
  b.plan += planTotal(target, batch.losses, sum);
  b.plan += planTotal(target, *batch.hits, hitSum);
  return std::move(b.plan);
}

Plan Trainer::makePlan(const MicroBatch &batch, Pass pass) const {
  return pass == Pass::evaluation ? planEvaluation(batch) : planGradient(batch, pass == Pass::later);
}

PreparedPlan Trainer::ready(const Plan &plan) {
  // A smaller shape may need more, because it is split in another way.
  if (plan.workspaceBytes > workspaces.back().bytes())
    workspaces.emplace_back(device, i8, Shape{plan.workspaceBytes});
  return kiln::prepare(*device, plan, workspaces.back());
}

void Trainer::prepare() {
  if (optimizer.isReady())
    return;
  Plan whole; // one plan, so that all kernels compile in parallel
  for (const BatchShape &shape : oneOfEachKind(shapes, target, settings.lossChunks)) {
    const MicroBatch batch = allocateBatch(shape);
    whole += planGradient(batch, false);
    if (settings.accumulate > 1)
      whole += planGradient(batch, true);
    whole += planEvaluation(batch);
  }
  whole += optimizer.plan();
  ready(whole);
  optimizer.prepare([this](const Plan &plan) { return ready(plan); },
                    ranks->isAlone() ? Plan() : planGradient(allocateBatch(shapes[0]), false));
}

Trainer::Passes &Trainer::findPasses(const HostBatch &batch) {
  if (shapes.size() > 1 && !batch.shape)
    throw Error("a batch has no shape, but the trainer has several shapes", Fault::internal);
  const BatchShape shape = batch.shape.value_or(shapes[0]);
  auto found = passes.find(shape);
  if (found == passes.end()) {
    if (passes.size() >= mostReady)
      passes.erase(std::min_element(passes.begin(), passes.end(),
                                    [](const auto &a, const auto &b) { return a.second.used < b.second.used; }));
    found = passes.emplace(shape, Passes{allocateBatch(shape), {}}).first;
  }
  found->second.used = ++uses;
  return found->second;
}

namespace {
/// During its lifetime nothing is compiled.
class Frozen {
public:
  Frozen() : before(freeze()) {}
  ~Frozen() { freeze(before); }
  Frozen(const Frozen &) = delete;

private:
  const bool before;
};
} // namespace

static std::string formatShapes(const Launch &launch) {
  std::string text;
  for (const Arg &arg : launch.args)
    if (arg.kind != Arg::Kind::scalar)
      text += fmt::format("{}{}[{}]", text.empty() ? "" : ", ", nameOf(arg.ref.type), textOf(arg.ref.extents));
  return text;
}

/// Whether the launch's FLOPs are proportional to the visible pairs of positions.
static bool isAttention(const Launch &launch) {
  const Kernel *const kernels[] = {&attentionKernel, &attentionBackwardKernel, &attentionBackwardKeysKernel,
                                   &attentionBackwardQueriesKernel};
  return std::find(std::begin(kernels), std::end(kernels), launch.kernel) != std::end(kernels);
}

/// The launches with their FLOPs, for a batch of which attention computes a share.
static std::vector<Trainer::NamedLaunch> shared(std::vector<Trainer::NamedLaunch> launches, double share) {
  for (Trainer::NamedLaunch &launch : launches)
    if (launch.isAttention)
      launch.flops *= share;
  return launches;
}

std::vector<Trainer::NamedLaunch> Trainer::apart(const Plan &plan) {
  std::vector<NamedLaunch> result;
  for (const Launch &launch : plan.launches)
    result.push_back({launch.label, launch.kernel->name,
                      ready({.launches = {launch}, .workspaceBytes = plan.workspaceBytes}), launch.flops,
                      launch.bytes(), formatShapes(launch), isAttention(launch)});
  return result;
}

void Trainer::watch(Watcher given) {
  watcher = std::move(given);
  if (!watcher)
    return;
  for (auto &[shape, of] : passes) // so that the first profiled step does not prepare launches
    for (const Pass pass : {Pass::first, Pass::later})
      if (!of.ready[static_cast<size_t>(pass)].empty())
        launchesByName(of, pass);
}

const std::vector<Trainer::NamedLaunch> &Trainer::launchesByName(Passes &of, Pass pass) {
  std::vector<NamedLaunch> &launches = of.apart[static_cast<size_t>(pass)];
  if (launches.empty())
    launches = apart(makePlan(of.batch, pass));
  return launches;
}

/// The launches of a pass, cut where ranks exchange gradient buckets.
std::vector<Trainer::ReadyPart> Trainer::readyParts(const Plan &plan, Pass pass) {
  std::vector<ReadyPart> parts;
  if (pass == Pass::evaluation || !optimizer.overlaps())
    parts.push_back({ready(plan), 0});
  else
    for (const PlanPart &part : optimizer.cut(plan))
      parts.push_back({ready(part.plan), part.buckets});
  return parts;
}

void Trainer::run(Passes &of, Pass pass, bool isLast) {
  if (watcher && pass != Pass::evaluation)
    return watcher(of.attentionShare == 1 ? launchesByName(of, pass)
                                          : shared(launchesByName(of, pass), of.attentionShare));
  std::vector<ReadyPart> &parts = of.ready[static_cast<size_t>(pass)];
  if (parts.empty()) {
    const Plan plan = makePlan(of.batch, pass);
    try {
      const Frozen frozen;
      parts = readyParts(plan, pass);
    } catch (const Error &error) {
      const BatchShape &shape = of.batch.shape;
      throw Error(fmt::format("a micro-batch of {} sequences of {} target and {} source positions: {}", shape.sequences,
                              shape.target, shape.source, error.what()),
                  error.fault);
    }
  }
  for (const ReadyPart &part : parts) {
    part.run.run();
    for (int64_t i = 0; isLast && i < part.buckets; ++i)
      optimizer.exchangeNext();
  }
}

void Trainer::beginStep(double rate, int64_t number, std::optional<int64_t> given, std::optional<int64_t> step) {
  draw = step.value_or(number);
  sequences = 0;
  isFresh = true;
  targets = given.value_or(losses.count() * settings.accumulate);
  if (targets == 0)
    throw Error(fmt::format("expected targets in step {}, but all are missing", number));
  const StepRecord host =
      makeStepRecord(optimizer.settings(), {.rate = rate,
                                            .step = number,
                                            .clip = settings.clip > 0 ? settings.clip : AdamWStep().clip,
                                            .lossScale = scale.scale,
                                            .targets = targets,
                                            .good = scale.good,
                                            .window = scalesLoss() ? settings.scaleWindow : 0});
  record.upload(host.numbers.data(), record.bytes());
}

void Trainer::addGradient(const HostBatch &batch, int64_t micro) {
  prepare();
  Passes &of = findPasses(batch);
  HostBatch whole = batch;
  model.derive(whole, of.batch.shape);
  uploadInputs(of.batch, whole);
  of.attentionShare = watcher ? model.attentionShare(batch, of.batch.shape) : 1;
  sequences = micro == 0 ? 0 : sequences;
  uploadSites(sequences);
  sequences += of.batch.shape.sequences;
  run(of, micro == 0 || isFresh ? Pass::first : Pass::later, micro + ranks->size() >= settings.accumulate);
  isFresh = false;
}

StepResult Trainer::update() {
  prepare();
  if (optimizer.leavesOut() && !ranks->isAlone()) { // all ranks decide by the sum of all ranks' losses
    optimizer.exchangeAll();
    float loss = record.downloadFloats()[static_cast<size_t>(StepField::loss)];
    loss = static_cast<float>(ranks->sum(loss));
    device->upload(field(StepField::loss).data, &loss, sizeof(loss));
  }
  if (watcher && ranks->isAlone()) {
    if (stepApart.empty())
      stepApart = apart(optimizer.plan());
    watcher(stepApart);
  } else {
    optimizer.update();
  }
  device->synchronize();
  StepRecord host;
  record.download(host.numbers.data(), record.bytes());
  // The sum of the micro-batches' mean losses, weighted as if each had the full number of targets.
  const float full = static_cast<float>(std::max<int64_t>(targets, 1)) / static_cast<float>(losses.count());
  const bool isSummed = optimizer.leavesOut() || ranks->isAlone();
  const float loss =
      static_cast<float>(isSummed ? host[StepField::loss] : ranks->sum(host[StepField::loss])) * (1.0f / full);
  StepResult result = {loss, host[StepField::norm], host[StepField::applied] != 0, scale.scale};
  result.lossZ = host[StepField::lossZ];
  result.normZ = host[StepField::normZ];
  result.isOutlier = !result.applied && std::isfinite(result.gradientNorm);
  if (scalesLoss())
    scale = {host[StepField::scale], static_cast<int64_t>(host[StepField::good])};
  return result;
}

std::vector<TensorRef> Trainer::scratch() const {
  std::vector<TensorRef> all = {arena.ref(), workspaces.back().ref(), losses.ref(), sum.ref(), hitSum.ref()};
  for (const auto &[name, input] : inputs)
    all.push_back(input.ref());
  for (const Parameter &p : model.parameters().all()) // without the gaps, whose zeros norms and updates rely on
    if (p.role != Role::fixed)
      all.push_back(optimizer.gradients().slice(0, p.offset, p.count()));
  return all;
}

std::vector<Trainer::NamedLaunch> Trainer::launches() {
  Plan whole = planGradient(allocateBatch(shapes[0]), false);
  whole += optimizer.plan();
  return apart(whole);
}

Trainer::Sums Trainer::sums(const HostBatch &batch) {
  prepare();
  Passes &of = findPasses(batch);
  uploadInputs(of.batch, batch);
  run(of, Pass::evaluation);
  device->synchronize();
  return {sum.downloadFloats()[0], hitSum.downloadFloats()[0]};
}

} // namespace kiln

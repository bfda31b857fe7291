// Plans a step with addresses that are never read, and chooses among candidates.

#include "models/train/memory.h"
#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/train/optimizer.h"
#include "runtime/Device.h"
#include "runtime/Meters.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace kiln {

//===-- The plan ------------------------------------------------------------------------------------------------===//

BufferTypes bufferTypes(const Model &model, const TrainSettings &settings, int64_t ranks) {
  return {model.type(), settings.master ? f32 : model.type(),
          settings.accumulate > 1 || settings.lossChunks > 1 || ranks > 1 ? f32 : model.type()};
}

/// An address that is never read, for plans that are only measured. Regions are 2⁴⁰ bytes apart.
static TensorRef imagined(int region, Type type, Shape extents) {
  return TensorRef::dense(reinterpret_cast<void *>(static_cast<uintptr_t>(region) << 40), type, std::move(extents));
}

MemoryPlan planMemory(const Target &target, const Model &model, const BatchShape &shape, const TrainSettings &settings,
                      int64_t ranks) {
  const int64_t count = model.parameters().count();
  const BufferTypes types = bufferTypes(model, settings, ranks);
  const ParameterBuffers buffers = {imagined(2, types.weights, {count}), imagined(3, types.gradients, {count})};
  MemoryPlan memory;
  MicroBatch batch{.shape = shape, .inputs = {}, .losses = {}};
  int region = 4;
  const auto brought = [&](Type type, Shape extents) {
    const TensorRef place = imagined(region++, type, std::move(extents));
    memory.batch += place.bytes();
    return place;
  };
  batch.losses = brought(f32, {shape.targets()});
  const TensorRef hits = brought(f32, {shape.targets()}), sums = brought(f32, {2});
  const TensorRef record = brought(f32, {stepFields});
  if (settings.leavesOutliers())
    brought(f32, outlierWindowShape);
  for (const Input &input : model.inputs(shape))
    batch.inputs.emplace(input.name, brought(input.type, input.extents));
  std::optional<TensorRef> sites;
  if (const int64_t count = model.parameters().sites())
    sites = brought(i64, {count, Build::siteNumbers});
  const auto building = [&](Arena &arena, bool adds) {
    Build b{target, arena, model.parameters(), buffers, model.type(), adds};
    b.recompute = settings.recompute;
    b.lossChunks = settings.lossChunks;
    return b;
  };
  const auto gradient = [&](bool adds) { // addresses do not depend on accumulation
    Arena training;
    Build b = building(training, adds);
    b.lossWeight = record.slice(0, 0, 1);
    b.sites = sites;
    model.gradient(b, batch);
    memory.training = training.plan();
    memory.workspace = std::max(memory.workspace, b.plan.workspaceBytes);
    return std::move(b.plan);
  };
  if (settings.accumulate > 1)
    gradient(true);
  for (const Launch &launch : gradient(false).launches)
    memory.launches.push_back({launch.label, launch.kernel->name, launch.flops, launch.bytes()});
  Arena evaluation;
  Build reads = building(evaluation, false);
  batch.hits = hits;
  model.losses(reads, batch);
  memory.evaluation = evaluation.plan();
  const Shards shards = Shards::of(count, ranks, settings.bucket);
  memory.parameters = shards.padded * bytesOf(types.weights);
  memory.gradients = shards.padded * bytesOf(types.gradients);
  memory.masters = types.hasMasters() ? shards.own() * bytesOf(types.kept) : 0;
  memory.moments = 2 * shards.own() * bytesOf(f32);
  memory.exchange = exchangeBytes(target, shards);
  memory.activations = std::max(memory.training.bytes, memory.evaluation.bytes);
  memory.workspace = std::max(
      {memory.workspace, reads.plan.workspaceBytes, planGradNorm(target, buffers.gradients, record).workspaceBytes});
  return memory;
}

/// The maximal shapes: no other shape has at least as many targets and sources.
static std::vector<BatchShape> keepLargest(const std::vector<BatchShape> &shapes) {
  std::vector<BatchShape> largest;
  for (const BatchShape &shape : shapes) {
    const auto covers = [](const BatchShape &a, const BatchShape &b) {
      return a.targets() >= b.targets() && a.sources() >= b.sources();
    };
    if (std::any_of(largest.begin(), largest.end(), [&](const BatchShape &other) { return covers(other, shape); }))
      continue;
    std::erase_if(largest, [&](const BatchShape &other) { return covers(shape, other); });
    largest.push_back(shape);
  }
  return largest;
}

MemoryPlan planMemory(const Target &target, const Model &model, const std::vector<BatchShape> &shapes,
                      const TrainSettings &settings, int64_t ranks) {
  const std::vector<BatchShape> largest = keepLargest(shapes);
  MemoryPlan memory = planMemory(target, model, largest.at(0), settings, ranks);
  for (size_t i = 1; i < largest.size(); ++i) {
    const MemoryPlan other = planMemory(target, model, largest[i], settings, ranks);
    memory.training = united(memory.training, other.training);
    memory.evaluation = united(memory.evaluation, other.evaluation);
    memory.workspace = std::max(memory.workspace, other.workspace);
    memory.batch = std::max(memory.batch, other.batch);
  }
  memory.activations = std::max(memory.training.bytes, memory.evaluation.bytes);
  return memory;
}

//===-- The planner ---------------------------------------------------------------------------------------------===//

/// Numbers of loss chunks that are tried. With more chunks, the logits take less than a block's activations.
static constexpr int64_t chunkCounts[] = {1, 2, 4, 8, 16, 32};

/// GEMM FLOPs that take as long as moving a byte.
static double flopsPerByte(const Target &target) {
  return target.visit([](const CpuFacts &) { return 10.0; }, [](const GpuFacts &) { return 150.0; });
}

MemoryPlanner::MemoryPlanner(const Target &target, const Model &model, const BatchShape &shape,
                             const TrainSettings &settings, int64_t ranks)
    : target(target), model(model), shape(shape), settings(settings), ranks(ranks), blocks(model.blocks()) {
  if (blocks == 0)
    return;
  const MemoryCandidate all = planned({}, 1);
  std::vector<std::pair<double, Site>> prices;
  for (size_t i = 0; i < siteNames.size(); ++i) {
    Recompute alone;
    alone.blocks.at(i) = blocks;
    const MemoryCandidate candidate = planned(alone, 1);
    const auto saved = static_cast<double>(all.bytes - candidate.bytes);
    prices.emplace_back(saved > 0 ? (candidate.work - all.work) / saved : std::numeric_limits<double>::infinity(),
                        static_cast<Site>(i));
  }
  std::sort(prices.begin(), prices.end());
  for (const auto &[price, site] : prices)
    order.push_back(site);
}

TrainSettings MemoryPlanner::with(const MemoryCandidate &candidate) const {
  TrainSettings s = settings;
  s.recompute = candidate.recompute;
  s.lossChunks = candidate.lossChunks;
  return s;
}

MemoryCandidate MemoryPlanner::planned(const Recompute &recompute, int64_t lossChunks) const {
  MemoryCandidate candidate = {recompute, lossChunks};
  const MemoryPlan memory = planMemory(target, model, shape, with(candidate), ranks);
  candidate.bytes = memory.total();
  const double balance = flopsPerByte(target);
  for (const LaunchCost &launch : memory.launches)
    candidate.work += launch.flops + balance * static_cast<double>(launch.bytes);
  return candidate;
}

MemoryCandidate MemoryPlanner::at(int64_t step, int64_t lossChunks) const {
  const Recompute everything = recomputeNamed("recompute", "block");
  Recompute recompute;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t first = std::clamp<int64_t>(step - static_cast<int64_t>(i) * blocks, 0, blocks);
    const auto site = static_cast<size_t>(order[i]);
    recompute.blocks.at(site) = first == blocks ? everything.blocks.at(site) : first;
  }
  return planned(recompute, lossChunks);
}

std::optional<MemoryCandidate> MemoryPlanner::within(int64_t bytes) const {
  std::optional<MemoryCandidate> best;
  for (const int64_t chunks : chunkCounts) {
    MemoryCandidate found = at(steps(), chunks);
    if (found.bytes > bytes)
      continue;
    int64_t low = 0, high = steps(); // invariant: the first step within the budget is at least `low`
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const MemoryCandidate tried = at(middle, chunks);
      if (tried.bytes <= bytes)
        found = tried, high = middle;
      else
        low = middle + 1;
    }
    if (!best || found.work < best->work)
      best = found;
    if (high == 0)
      break; // nothing is recomputed, and more chunks cost more
  }
  return best;
}

MemoryCandidate MemoryPlanner::least() const {
  MemoryCandidate least = at(steps(), 1);
  for (const int64_t chunks : chunkCounts)
    if (const MemoryCandidate candidate = at(steps(), chunks); candidate.bytes < least.bytes)
      least = candidate;
  return least;
}

std::string MemoryPlanner::table() const {
  std::string text = fmt::format("\n{:>12} {:>10}  {:>11}  recomputed\n", "memory", "work", "loss chunks");
  const MemoryCandidate all = at(0, 1);
  for (const int64_t chunks : {int64_t{1}, int64_t{8}})
    for (int64_t step = 0; step <= steps(); step += std::max<int64_t>(blocks, 1)) {
      const MemoryCandidate candidate = at(step, chunks);
      text += fmt::format("{:>12} {:>+9.1f}%  {:>11}  {}\n", sizeText(candidate.bytes),
                          (candidate.work / all.work - 1) * 100, chunks, nameOf(candidate.recompute));
    }
  return text;
}

/// The maximum memory for compiling on two threads: the kernels of GPT-2 steps were measured at 36 to 48 MiB.
static constexpr int64_t compilingBytes = int64_t{64} << 20;
/// The process's present memory is rounded up to this, so that a choice does not depend on a few pages.
static constexpr int64_t grain = int64_t{16} << 20;

int64_t bytesOutsidePlan(const Device &device, const Model &model) {
  if (!isHostMemory(device))
    return 0;
  int64_t largest = 0;
  for (const Parameter &p : model.parameters().all())
    largest = std::max(largest, p.count() * bytesOf(f32));
  return cdiv(residentBytes(), grain) * grain + compilingBytes + largest;
}

/// The budget in bytes on a device.
static int64_t availableBytes(const MemoryBudget &budget, const Device &device, const Collective &ranks) {
  if (budget.bytes)
    return *budget.bytes;
  if (const std::optional<int64_t> free = freeBytesOf(device))
    return *free / 10 * 9;
  if (!isHostMemory(device))
    throw Error(fmt::format("--memory requires a size, such as 40GiB, because '{}' does not report its free memory",
                            device.name()));
  return residentBytes() + availableBytes() / 10 * 9 / ranks.localSize();
}

FittedSettings fitToMemory(const Device &device, const Model &model, const TrainSettings &settings,
                           const MemoryBudget &budget, int64_t ranks, Collective &together) {
  Target target = device.target();
  target.precision = settings.precision;
  const MemoryPlanner planner(target, model, model.shape(settings.batch), settings, ranks);
  const int64_t bytes = availableBytes(budget, device, together), beside = bytesOutsidePlan(device, model);
  std::optional<MemoryCandidate> candidate = planner.within(bytes - beside);
  if (!candidate) {
    const MemoryCandidate least = planner.least();
    throw Error(
        fmt::format("expected '--memory' of at least {} for this model and --batch {}, but got {}; a smaller --batch "
                    "requires less (plan {} with --recompute {} and --loss-chunks {}, rest of the process {})",
                    sizeText(least.bytes + beside), settings.batch, sizeText(bytes), sizeText(least.bytes),
                    nameOf(least.recompute), least.lossChunks, sizeText(beside)));
  }
  together.broadcast(&*candidate, sizeof(*candidate)); // processes may have different amounts of free memory
  const double more = (candidate->work / planner.at(0, 1).work - 1) * 100;
  return {planner.with(*candidate),
          fmt::format("memory: plan {} + process {} of {}: --recompute {} --loss-chunks {}, {:+.1f} % computation",
                      sizeText(candidate->bytes), sizeText(beside), sizeText(bytes), nameOf(candidate->recompute),
                      candidate->lossChunks, more)};
}

FittedSettings fitToMemoryWithTable(const Device &device, const Model &model, const TrainSettings &settings,
                                    const MemoryBudget &budget, int64_t ranks) {
  const std::string table = MemoryPlanner(device.target(), model, model.shape(settings.batch), settings, ranks).table();
  FittedSettings fit = fitToMemory(device, model, settings, budget, ranks);
  fit.note = fmt::format("{}\n{}\n", table, fit.note);
  return fit;
}

} // namespace kiln

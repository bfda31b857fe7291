// Plans a step with addresses that are never read.

#include "models/train/memory.h"
#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/train/optimizer.h"

#include <algorithm>

namespace kiln {

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
static std::vector<BatchShape> largestOf(const std::vector<BatchShape> &shapes) {
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
  const std::vector<BatchShape> largest = largestOf(shapes);
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

} // namespace kiln

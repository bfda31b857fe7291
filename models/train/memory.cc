// Planning a step at addresses that are never read.

#include "models/train/memory.h"
#include "kernels/adamw.h"

#include <algorithm>

namespace kiln {

TensorRef imagined(int region, Type type, Shape extents) {
  return TensorRef::dense(reinterpret_cast<void *>(static_cast<uintptr_t>(region) << 40), type, std::move(extents));
}

MemoryPlan planMemory(const Target &target, const Model &model, int64_t sequences) {
  const int64_t count = model.parameters().count();
  const TensorRef gradient = imagined(3, model.type(), {count});
  Arena arena(imagined(1, f32, {1}).data);
  Build build{target, arena, model.parameters(), ParameterBuffers{imagined(2, model.type(), {count}), gradient},
              model.type()};
  MemoryPlan memory;
  MicroBatch batch;
  int region = 4;
  batch.losses = imagined(region++, f32, {model.targets(sequences)});
  memory.batch = batch.losses.bytes();
  for (Shape &extents : model.inputs(sequences)) {
    batch.inputs.push_back(imagined(region++, i32, std::move(extents)));
    memory.batch += batch.inputs.back().bytes();
  }
  model.gradient(build, batch, 1);
  memory.buffers = arena.entries();
  memory.launches = build.plan.launches.size();
  model.losses(build, batch);
  memory.parameters = memory.gradients = gradient.bytes();
  memory.moments = 2 * count * bytesOf(f32);
  memory.activations = arena.peak();
  const Plan norm = planGradNorm(target, gradient, imagined(region, f32, {stepFields}));
  memory.workspace = std::max(build.plan.workspaceBytes, norm.workspaceBytes);
  return memory;
}

} // namespace kiln

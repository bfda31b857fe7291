// Allocation, the plans of a step, and running them.

#include "models/train/trainer.h"
#include "kernels/sum.h"

#include <algorithm>
#include <cstring>

namespace kiln {

/// An address that is never read, for plans made only to be measured. Regions are 2⁴⁰ bytes apart.
static TensorRef imagined(int region, Type type, Shape extents) {
  return TensorRef::dense(reinterpret_cast<void *>(static_cast<uintptr_t>(region) << 40), type, std::move(extents));
}

static int64_t distinctTokens(const Gpt2Config &c, int64_t rows) { return std::min(c.vocab, rows); }

MemoryPlan planMemory(const Target &target, const Network &net, int64_t batch) {
  const Gpt2Config &c = net.config();
  const int64_t rows = batch * c.context, distinct = distinctTokens(c, rows), count = net.parameters().count();
  Arena arena(imagined(1, f32, {1}).data);
  Build build{target, arena, net.parameters(),
              ParameterBuffers{imagined(2, c.type, {count}), imagined(3, c.type, {count})}, c.type};
  const BatchRefs refs = {imagined(4, i32, {rows}),
                          imagined(5, i32, {rows}),
                          {imagined(6, i32, {distinct}), imagined(7, i32, {distinct + 1}), imagined(8, i32, {rows})},
                          imagined(9, f32, {rows})};
  net.gradient(build, refs, batch, 1);
  MemoryPlan memory;
  memory.buffers = arena.entries();
  memory.launches = build.plan.launches.size();
  net.losses(build, refs, batch);
  memory.parameters = memory.gradients = count * bytesOf(c.type);
  memory.moments = 2 * count * bytesOf(f32);
  memory.activations = arena.peak();
  const Plan normPlan = planGradNorm(target, imagined(3, c.type, {count}), imagined(10, f32, {stepFields}));
  memory.workspace = std::max(build.plan.workspaceBytes, normPlan.workspaceBytes);
  memory.batch = (3 * rows + 2 * distinct + 1) * bytesOf(i32) + rows * bytesOf(f32);
  return memory;
}

void Gpt2::allocateBatch() {
  const Gpt2Config &c = net.config();
  const int64_t rows = batch * c.context, distinct = distinctTokens(c, rows);
  tokens = Tensor(device, i32, {rows});
  targets = Tensor(device, i32, {rows});
  indexTokens = Tensor(device, i32, {distinct});
  indexStarts = Tensor(device, i32, {distinct + 1});
  indexPositions = Tensor(device, i32, {rows});
  losses = Tensor(device, f32, {rows});
  refs = {tokens, targets, {indexTokens, indexStarts, indexPositions}, losses};
}

Gpt2::Gpt2(std::shared_ptr<Device> opened, const Gpt2Config &c, int64_t batch)
    : device(std::move(opened)), net(c), batch(batch), accumulate(0), value(device, c.type, {net.parameters().count()}),
      totals(device, f32, {1}), logits(device, c.type, {1, c.vocab}) {
  allocateBatch();
  Arena measured(imagined(1, f32, {1}).data);
  const Plan plan = planPrediction(measured, 0);
  arena = Tensor(device, i8, {measured.peak()});
  workspace = Tensor(device, i8, {plan.workspaceBytes});
}

Plan Gpt2::planPrediction(Arena &placed, int64_t row) const {
  Build b{device->target(), placed, net.parameters(), ParameterBuffers{value, value}, net.config().type};
  const TensorRef hidden = net.hidden(b, tokens, batch);
  net.logits(b, hidden.slice(0, row, 1), logits);
  return std::move(b.plan);
}

Gpt2::Gpt2(std::shared_ptr<Device> opened, const Gpt2Config &c, int64_t batch, int64_t accumulate)
    : device(std::move(opened)), net(c), batch(batch), accumulate(accumulate),
      value(device, c.type, {net.parameters().count()}), gradient(device, c.type, {net.parameters().count()}),
      first(device, f32, {net.parameters().count()}), second(device, f32, {net.parameters().count()}),
      totals(device, f32, {accumulate}), record(device, f32, {stepFields}) {
  allocateBatch();
  const MemoryPlan memory = planMemory(device->target(), net, batch);
  arena = Tensor(device, i8, {memory.activations});
  workspace = Tensor(device, i8, {memory.workspace});
  const float scale = 1.0f / static_cast<float>(batch * c.context * accumulate);
  auto build = [&](bool adds) {
    Arena placed(arena.data());
    Build b{device->target(), placed, net.parameters(), ParameterBuffers{value, gradient}, c.type, adds};
    net.gradient(b, refs, batch, scale);
    return std::move(b.plan);
  };
  firstMicro = build(false);
  if (accumulate > 1)
    laterMicro = build(true);
  Arena placed(arena.data());
  Build b{device->target(), placed, net.parameters(), ParameterBuffers{value, gradient}, c.type};
  net.losses(b, refs, batch);
  evaluation = std::move(b.plan);
}

void Gpt2::run(const Plan &plan) { kiln::run(*device, plan, workspace); }

void Gpt2::initialize(uint64_t seed) {
  const Random random(seed, Stream::weights);
  std::vector<float> host(net.parameters().count());
  for (size_t i = 0; i < net.parameters().all().size(); ++i) {
    const Parameter &p = net.parameters()[static_cast<int>(i)];
    float *to = host.data() + p.offset;
    if (p.init.kind == Init::Kind::ones)
      std::fill_n(to, p.count(), 1.0f);
    if (p.init.kind == Init::Kind::normal) {
      const std::vector<float> drawn = random.normals(p.count(), p.init.deviation, static_cast<uint32_t>(i));
      std::copy(drawn.begin(), drawn.end(), to);
    }
  }
  value.uploadFloats(host);
  if (accumulate > 0) {
    first.fillZero();
    second.fillZero();
  }
}

void Gpt2::uploadWeights(const std::vector<char> &values) {
  value.upload(values.data(), static_cast<int64_t>(values.size()));
}

void Gpt2::upload(const HostBuffers &host) {
  uploadWeights(host.values);
  first.uploadFloats(host.first);
  second.uploadFloats(host.second);
}

HostBuffers Gpt2::download() const {
  HostBuffers host;
  host.values.resize(value.bytes());
  value.download(host.values.data(), value.bytes());
  host.first = first.downloadFloats();
  host.second = second.downloadFloats();
  return host;
}

static void uploadAll(Tensor &to, const std::vector<int32_t> &from) {
  to.upload(from.data(), static_cast<int64_t>(from.size() * sizeof(int32_t)));
}

void Gpt2::uploadBatch(const Batch &b) {
  uploadAll(tokens, b.tokens);
  uploadAll(targets, b.targets);
}

void Gpt2::visitGradient(int64_t micro, const Visit &visit) const {
  visit(micro == 0 ? firstMicro : laterMicro);
  visit(
      planTotal(device->target(), losses, totals.ref().slice(0, micro, 1), 1.0f / static_cast<float>(losses.count())));
}

void Gpt2::visitUpdate(const Visit &visit) const {
  const TensorRef loss = record.ref().slice(0, static_cast<int64_t>(StepField::loss), 1);
  visit(planTotal(device->target(), totals, loss, 1.0f / static_cast<float>(accumulate)));
  visit(planGradNorm(device->target(), gradient, record));
  visit(planAdamW(device->target(), value, gradient, first, second, record, adamw));
}

/// Micro-batches after the first differ in where their total goes; how that is aligned repeats after 64 bytes.
static constexpr int64_t differentMicros = 1 + 64 / 4;

void Gpt2::prepare() {
  Plan step;
  const Visit gather = [&](const Plan &plan) { step += plan; };
  for (int64_t micro = 0; micro < std::min(accumulate, differentMicros); ++micro)
    visitGradient(micro, gather);
  visitUpdate(gather);
  kiln::prepare(*device, step, workspace);
}

void Gpt2::addGradient(const Batch &b, int64_t micro) {
  uploadBatch(b);
  const HostEmbeddingIndex index = indexOf(b.tokens, net.config().vocab);
  uploadAll(indexTokens, index.tokens);
  uploadAll(indexStarts, index.starts);
  uploadAll(indexPositions, index.positions);
  visitGradient(micro, [&](const Plan &plan) { run(plan); });
}

void Gpt2::beginStep(const TrainSettings &s, double rate, int64_t step) {
  adamw = {.beta1 = s.beta1,
           .beta2 = s.beta2,
           .epsilon = s.epsilon,
           .decay = s.decay,
           .decayed = net.parameters().decayedCount()};
  const StepRecord host = recordOf(adamw, {.rate = rate, .step = step, .clip = s.clip});
  record.upload(host.numbers.data(), record.bytes());
}

UpdateResult Gpt2::update() {
  visitUpdate([&](const Plan &plan) { run(plan); });
  device->synchronize();
  StepRecord host;
  record.download(host.numbers.data(), record.bytes());
  return {host[StepField::loss], host[StepField::norm]};
}

double Gpt2::lossSum(const Batch &b) {
  uploadBatch(b);
  run(evaluation);
  run(planTotal(device->target(), losses, totals.ref().slice(0, 0, 1)));
  device->synchronize();
  return totals.downloadFloats()[0];
}

std::vector<float> Gpt2::logitsAfter(const std::vector<int32_t> &given) {
  const Gpt2Config &c = net.config();
  if (given.empty() || static_cast<int64_t>(given.size()) > c.context)
    throw Error("expected 1 to " + std::to_string(c.context) + " tokens, but got " + std::to_string(given.size()));
  std::vector<int32_t> padded = given;
  padded.resize(batch * c.context, 0);
  uploadAll(tokens, padded);
  Arena placed(arena.data());
  run(planPrediction(placed, static_cast<int64_t>(given.size()) - 1));
  device->synchronize();
  return logits.downloadFloats();
}

} // namespace kiln

// Plans of a training step, of a decoding step, a pass of models/generate/generator.h, and of every kernel of the
// models at typical sizes.

#include "tools/kiln-bench/problems.h"

#include "kernels/adamw.h"
#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"
#include "models/train/memory.h"

#include <fmt/format.h>

namespace kiln::bench {

// --- A training step ------------------------------------------------------------------------------------------------

void *imaginedRegion(int region, int64_t) { return reinterpret_cast<void *>(static_cast<uintptr_t>(region) << 40); }

Gpt2Config config124M(Type type, int64_t layers, int64_t context) {
  Gpt2Config config = {.layers = layers, .heads = 12, .width = 768, .context = context, .vocab = 50257};
  config.type = type;
  return config;
}

Gpt2Config tinyModel(Type type) { return {.layers = 1, .heads = 2, .width = 64, .context = 32, .type = type}; }

Plan stepPlan(const Target &target, const Model &model, const TrainSettings &settings, const Regions &regions,
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

Plan stepPlans(const Target &target, const Model &model, int64_t sequences) {
  Plan plan = stepPlan(target, model, {.batch = sequences}, imaginedRegion);
  plan += stepPlan(target, model, {.batch = sequences, .accumulate = 2}, imaginedRegion);
  if (model.type() != f32)
    plan += stepPlan(target, model, {.batch = sequences, .master = false, .rounding = WeightRounding::stochastic},
                     imaginedRegion);
  return plan;
}

// --- A decoding step ------------------------------------------------------------------------------------------------

Plan tokenPlan(const Target &target, const Gpt2Config &config, int64_t texts, Operands &make) {
  Target exact = target;
  exact.precision = Precision::ieee;
  const Network network(config);
  const Type type = network.type();
  const TensorRef weights = make({network.parameters().count()}, type);
  const int64_t T = config.context, H = config.heads, D = config.width / H;
  const auto count = static_cast<size_t>(texts), last = static_cast<size_t>(T - 1);
  // Each text's new position is the cache's last one, and sees all others.
  const std::vector<int32_t> places(count, static_cast<int32_t>(last));
  std::vector<int32_t> seen;
  for (size_t text = 0; text < count; ++text)
    seen.insert(seen.end(), {0, static_cast<int32_t>(T)});
  const TensorRef tokens = make({texts}, i32), positions = make.of({texts}, i32, places),
                  starts = make.of({texts}, i32, places), ranges = make.of({texts, 1, 2}, i32, seen);
  std::vector<KvCache> caches;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    caches.push_back({make({texts, H, T, D}, type), make({texts, H, T, D}, type), starts, ranges});
  const TensorRef logits = make({texts, config.vocab}, type);
  const auto planned = [&](Arena &arena) {
    Build build{exact, arena, network.parameters(), ParameterBuffers{weights, weights}, type};
    const TensorRef hidden = network.layers().extend(build, tokens, positions, caches);
    network.logits(build, hidden, logits);
    build.release(hidden);
    return std::move(build.plan);
  };
  Arena measured;
  planned(measured);
  const ArenaPlan where = measured.plan();
  Arena arena(where, make({where.bytes}, i8).data);
  return planned(arena);
}

double bytesOfToken(const Gpt2Config &config, int64_t texts) {
  const int64_t caches = texts * config.layers * 2 * config.context * config.width;
  return static_cast<double>((Network(config).parameters().count() + caches) * bytesOf(config.type));
}

// --- Each kernel ----------------------------------------------------------------------------------------------------

/// The default config, or none, so that plans choose one.
template <class Config> static std::optional<Config> configOf(const KernelSizes &sizes) {
  return sizes.defaults ? std::optional(Config()) : std::nullopt;
}

/// As above, with the precision of a target, which the default config does not know.
template <class Config> static std::optional<Config> configOf(const KernelSizes &sizes, Precision precision) {
  std::optional<Config> config = configOf<Config>(sizes);
  if (config)
    config->precision = precision;
  return config;
}

/// Tokens with the variety of text.
static TensorRef tokensOf(Operands &make, int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(i * 7919 % vocabulary));
  return make.of({count}, i32, tokens);
}

Plan productPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
  const int64_t N = sizes.N, C = sizes.C;
  const auto config = configOf<MatmulConfig>(sizes, target.precisionOf(type));
  const TensorRef x = make({N, C}, type), w = make({C, 4 * C}, type), bias = make({4 * C}, type);
  const TensorRef y = make({N, 4 * C}, type), pre = make({N, 4 * C}, type), back = make({4 * C, C}, type);
  const TensorRef out = make({N, C}, type), table = make({sizes.V, C}, type), logits = make({N, sizes.V}, type);
  Plan plan = planMatmul(target, Layout::nt, x, table, logits, false, config);
  plan += planMatmul(target, Layout::nn, logits, table, out, false, config);
  plan += planMatmul(target, Layout::nn, x, w, y, false, config);
  plan += planMatmul(target, Layout::nt, y, w, out, false, config);
  plan += planMatmulBias(target, Layout::nn, x, w, bias, y, config);
  plan += planMatmulGelu(target, Layout::nn, x, w, bias, pre, y, config);
  plan += planMatmulResidual(target, Layout::nn, y, back, make({C}, type), x, out, config);
  plan += planMatmulGeluBackward(target, Layout::nt, x, back, pre, y, config);
  plan += planWeightGradient(target, x, y, make({C, 4 * C}, type), make({4 * C}, type), false, config);
  return plan;
}

Plan attentionPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
  const int64_t B = sizes.N / sizes.T, T = sizes.T, H = sizes.H, D = sizes.C / H;
  auto config = configOf<AttentionConfig>(sizes, target.precisionOf(type));
  const TensorRef qkv = make({B, T, 3, H, D}, type), dqkv = make({B, T, 3, H, D}, type), lse = make({B, H, T}, f32);
  const auto heads = [&] { return make({B, T, H, D}, type).permute({0, 2, 1, 3}); };
  const auto part = [](const TensorRef &packed, int which) { return packed.select(2, which).permute({0, 2, 1, 3}); };
  const AttentionSaved saved{part(qkv, 0), part(qkv, 1), part(qkv, 2), heads(), lse, heads()};
  Plan plan = planAttention(target, saved.q, saved.k, saved.v, saved.o, lse, 0.125f, {}, config);
  for (const bool whole : {false, true}) {
    if (config)
      config->whole = whole;
    if (config || !whole)
      plan += planAttentionBackward(target, saved, part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), 0.125f, {}, config);
  }
  return plan;
}

std::vector<KernelPlan> rowPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
  const int64_t N = sizes.N, C = sizes.C, V = sizes.V, L = sizes.losses;
  std::vector<KernelPlan> plans;
  const auto add = [&](std::string name, double bytes, Plan plan) {
    plans.push_back({std::move(name), bytes, std::move(plan)});
  };
  const auto config = configOf<LayerNormConfig>(sizes);
  const auto embedding = configOf<EmbeddingConfig>(sizes);
  const auto matrix = [&] { return make({N, C}, type); };
  const TensorRef x = matrix(), dout = matrix(), out = matrix(), gamma = make({C}, type), beta = make({C}, type);
  const TensorRef mean = make({N}, f32), rstd = make({N}, f32);
  const auto bytes = static_cast<double>(x.bytes());
  add(fmt::format("layernorm forward {}x{}", N, C), 2 * bytes,
      planLayerNorm(target, x, gamma, beta, out, mean, rstd, 1e-5f, config));
  add(fmt::format("layernorm of a residual {}x{}", N, C), 4 * bytes,
      planResidualLayerNorm(target, x, dout, gamma, beta, matrix(), out, mean, rstd, 1e-5f, config));
  // dx joins the residual's gradient: dout, x and dx are read, dx is written.
  add(fmt::format("layernorm backward {}x{}", N, C), 4 * bytes,
      planLayerNormBackward(target, dout, x, gamma, mean, rstd, matrix(), make({C}, type), make({C}, type),
                            {.dx = true}, {}, configOf<LayerNormBackwardConfig>(sizes)));
  add(fmt::format("softmax {}x{}", N, C), 2 * bytes, planSoftmax(target, x, out, configOf<SoftmaxConfig>(sizes)));
  const TensorRef logits = make({L, V}, type), targets = tokensOf(make, L, V), losses = make({L}, f32);
  const auto entropy = configOf<CrossEntropyConfig>(sizes);
  add(fmt::format("cross-entropy in place {}x{}", L, V), 2 * static_cast<double>(logits.bytes()),
      planCrossEntropy(target, logits, targets, losses, V, 1.0f / static_cast<float>(L), ignoreIndex, {}, {}, entropy));
  add(fmt::format("cross-entropy {}x{}", L, V), static_cast<double>(logits.bytes()),
      planCrossEntropyLoss(target, logits, targets, losses, V, ignoreIndex, {}, entropy));
  add("total", 0, planTotal(target, losses, make({1}, f32), 1, false, configOf<TotalConfig>(sizes)));
  // A row of the table is read and one of x is written for each token; positions stay in a cache.
  const TensorRef tokens = tokensOf(make, N, V), table = make({V, C}, type), places = make({sizes.T, C}, type);
  add(fmt::format("embedding {}x{}", N, C), 2 * bytes,
      planEmbedding(target, tokens, table, places, x, sizes.T, embedding));
  add("token gradient", 0,
      planTokenGradient(target, {make({N}, i32), make({N + 1}, i32), make({N}, i32)}, x, table, true, embedding));
  add("position gradient", 0, planPositionGradient(target, x, places, sizes.T, false, embedding));
  return plans;
}

std::vector<KernelPlan> flatPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
  const int64_t G = sizes.activations, W = sizes.weights, own = bytesOf(type), wide = bytesOf(f32);
  std::vector<KernelPlan> plans;
  const auto add = [&](const char *name, int64_t count, int64_t bytes, Plan plan) {
    plans.push_back({fmt::format("{} {}", name, count), static_cast<double>(bytes * count), std::move(plan)});
  };
  const TensorRef x = make({G}, type), dout = make({G}, type), out = make({G}, type);
  const auto gelu = configOf<GeluConfig>(sizes);
  add("gelu forward", G, 2 * own, planGelu(target, x, out, gelu));
  add("gelu backward", G, 3 * own, planGeluBackward(target, x, dout, out, gelu));
  add("add", G, 3 * own, planAdd(target, x, dout, out, configOf<AddConfig>(sizes)));
  // p, m and v are read and written, g is read.
  const TensorRef p = make({W}, f32), g = make({W}, type), m = make({W}, f32), v = make({W}, f32);
  const TensorRef record = make.record();
  const auto config = configOf<AdamWConfig>(sizes);
  AdamWSettings settings = {.decayed = W};
  if (type == f32) {
    add("adamw", W, 7 * wide, planAdamW(target, p, g, m, v, record, settings, {}, config));
  } else {
    const TensorRef copy = make({W}, type);
    add("adamw, master weights and a copy", W, 6 * wide + 2 * own,
        planAdamW(target, p, g, m, v, record, settings, copy, config));
    for (const WeightRounding rounding : {WeightRounding::nearest, WeightRounding::stochastic}) {
      settings.rounding = rounding;
      add(rounding == WeightRounding::nearest ? "adamw, no master weights" : "adamw, stochastic rounding", W,
          4 * wide + 3 * own, planAdamW(target, copy, g, m, v, record, settings, {}, config));
    }
  }
  add("gradient norm", W, own, planGradNorm(target, g, record, configOf<SquaresConfig>(sizes)));
  return plans;
}

Plan kernelPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
  Plan plan = productPlans(target, type, sizes, make);
  for (const KernelPlan &each : rowPlans(target, type, sizes, make))
    plan += each.plan;
  plan += attentionPlans(target, type, sizes, make);
  for (const KernelPlan &each : flatPlans(target, type, sizes, make))
    plan += each.plan;
  return plan;
}

} // namespace kiln::bench

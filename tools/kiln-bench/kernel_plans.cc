// Every kernel of the models at typical sizes.

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
#include "tools/kiln-bench/problems.h"

#include <fmt/format.h>

using namespace kiln;
using namespace kiln::bench;

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

Plan bench::productPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
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

Plan bench::attentionPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
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

std::vector<KernelPlan> bench::rowPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
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

std::vector<KernelPlan> bench::flatPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
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

Plan bench::kernelPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make) {
  Plan plan = productPlans(target, type, sizes, make);
  for (const KernelPlan &each : rowPlans(target, type, sizes, make))
    plan += each.plan;
  plan += attentionPlans(target, type, sizes, make);
  for (const KernelPlan &each : flatPlans(target, type, sizes, make))
    plan += each.plan;
  return plan;
}

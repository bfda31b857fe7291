// Kernels that memory bounds: the bytes that must move at least, over time, beside a plain copy that moves as many
// bytes (up to 1 GB) in the same run.

#include "kernels/adamw.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "tools/kiln-bench/bench.h"

#include <algorithm>
#include <fmt/format.h>

using namespace kiln;

/// Measures `plan`, which moves at least `bytes`, beside a copy.
static void measureBytes(bench::Setting &setting, const std::string &shape, double bytes, Plan plan) {
  int64_t count = static_cast<int64_t>(std::min(bytes, 1e9) / 8); // a copied float is read and written: 8 bytes
  Tensor from = bench::zeroTensor(setting, {count}), to = bench::zeroTensor(setting, {count});
  std::vector<double> seconds =
      setting.measure({bench::Runner(setting, std::move(plan)), bench::copyOf(setting, from, to)});
  setting.report.add({.bench = "layernorm",
                      .shape = shape,
                      .metric = "gb_per_s",
                      .value = bytes / seconds[0] / 1e9,
                      .peer = "copy",
                      .peerValue = 8.0 * static_cast<double>(count) / seconds[1] / 1e9,
                      .dtype = nameOf(setting.type)});
}

static void measureLayerNorm(bench::Setting &setting, int64_t N, int64_t C) {
  const Target target = setting.target();
  Tensor x = bench::randomTensor(setting, {N, C}, 1), dout = bench::randomTensor(setting, {N, C}, 2);
  Tensor gamma = bench::randomTensor(setting, {C}, 3), beta = bench::randomTensor(setting, {C}, 4);
  Tensor out = bench::zeroTensor(setting, {N, C}, setting.type), dx = bench::zeroTensor(setting, {N, C}, setting.type);
  Tensor mean = bench::zeroTensor(setting, {N}), rstd = bench::zeroTensor(setting, {N});
  Tensor dgamma = bench::zeroTensor(setting, {C}), dbeta = bench::zeroTensor(setting, {C});
  const double bytes = static_cast<double>(x.bytes());
  measureBytes(setting, fmt::format("layernorm forward {}x{}", N, C), 2 * bytes,
               planLayerNorm(target, x, gamma, beta, out, mean, rstd));
  Tensor sum = bench::zeroTensor(setting, {N, C}, setting.type);
  measureBytes(setting, fmt::format("layernorm of a residual {}x{}", N, C), 4 * bytes,
               planResidualLayerNorm(target, x, dout, gamma, beta, sum, out, mean, rstd));
  // dx joins the residual's gradient: dout, x and dx are read, dx is written.
  measureBytes(setting, fmt::format("layernorm backward {}x{}", N, C), 4 * bytes,
               planLayerNormBackward(target, dout, x, gamma, mean, rstd, dx, dgamma, dbeta, {.dx = true}));
}

static void measureCrossEntropy(bench::Setting &setting, int64_t N, int64_t V) {
  Tensor logits = bench::randomTensor(setting, {N, V}, 1);
  Tensor targets = bench::zeroTensor(setting, {N}, Type::i32), losses = bench::zeroTensor(setting, {N});
  std::vector<int32_t> wanted(static_cast<size_t>(N));
  for (size_t n = 0; n < wanted.size(); ++n)
    wanted[n] = static_cast<int32_t>(n * 7919 % static_cast<size_t>(V));
  targets.upload(wanted.data(), static_cast<int64_t>(wanted.size() * sizeof(int32_t)));
  measureBytes(setting, fmt::format("cross-entropy in place {}x{}", N, V), 2.0 * static_cast<double>(logits.bytes()),
               planCrossEntropy(setting.target(), logits, targets, losses, V, 1.0f / static_cast<float>(N)));
}

static void measureGelu(bench::Setting &setting, int64_t count) {
  Tensor x = bench::randomTensor(setting, {count}, 1), dout = bench::randomTensor(setting, {count}, 2);
  Tensor out = bench::zeroTensor(setting, {count}, setting.type);
  const double bytes = static_cast<double>(x.bytes());
  measureBytes(setting, fmt::format("gelu forward {}", count), 2 * bytes, planGelu(setting.target(), x, out));
  measureBytes(setting, fmt::format("gelu backward {}", count), 3 * bytes,
               planGeluBackward(setting.target(), x, dout, out));
}

static void measureEmbedding(bench::Setting &setting, int64_t N, int64_t T, int64_t V, int64_t C) {
  Tensor wte = bench::randomTensor(setting, {V, C}, 1), wpe = bench::randomTensor(setting, {T, C}, 2);
  Tensor tokens = bench::zeroTensor(setting, {N}, Type::i32), out = bench::zeroTensor(setting, {N, C}, setting.type);
  std::vector<int32_t> chosen(static_cast<size_t>(N));
  for (size_t n = 0; n < chosen.size(); ++n)
    chosen[n] = static_cast<int32_t>(n * 7919 % static_cast<size_t>(V));
  tokens.upload(chosen.data(), static_cast<int64_t>(chosen.size() * sizeof(int32_t)));
  // A row of wte is read and one of out is written for each token; wpe stays in a cache.
  measureBytes(setting, fmt::format("embedding {}x{}", N, C), 2.0 * static_cast<double>(out.bytes()),
               planEmbedding(setting.target(), tokens, wte, wpe, out, T));
}

/// The optimiser with gradients of the setting's type: of f32 weights, of f32 masters of narrow ones, and of narrow
/// ones by themselves; and the norm of the gradient.
static void measureAdamW(bench::Setting &setting, int64_t count) {
  const bool narrow = setting.type != Type::f32;
  Tensor p = bench::zeroTensor(setting, {count}), g = bench::randomTensor(setting, {count}, 1);
  Tensor m = bench::zeroTensor(setting, {count}), v = bench::zeroTensor(setting, {count});
  Tensor record(setting.device, f32, {stepFields});
  AdamWSettings settings = {.decayed = count};
  record.upload(recordOf(settings, {.step = 10}).numbers.data(), record.bytes());
  const auto measure = [&](const char *what, int64_t bytes, Plan plan) {
    measureBytes(setting, fmt::format("{} {}", what, count), static_cast<double>(bytes * count), std::move(plan));
  };
  const int64_t wide = bytesOf(f32), own = bytesOf(setting.type);
  // p, m and v are read and written, g is read.
  if (narrow) {
    Tensor copy = bench::zeroTensor(setting, {count}, setting.type);
    measure("adamw, masters and a copy", 6 * wide + 2 * own,
            planAdamW(setting.target(), p, g, m, v, record, settings, copy));
    measure("adamw, no masters", 4 * wide + 3 * own, planAdamW(setting.target(), copy, g, m, v, record, settings));
    settings.rounding = Rounding::stochastic;
    measure("adamw, no masters, by chance", 4 * wide + 3 * own,
            planAdamW(setting.target(), copy, g, m, v, record, settings));
  } else {
    measure("adamw", 7 * wide, planAdamW(setting.target(), p, g, m, v, record, settings));
  }
  measure("gradient norm", own, planGradNorm(setting.target(), g, record));
}

void bench::benchLayerNorm(Setting &setting) {
  setting.report.section(fmt::format("{}: least bytes over time, beside a copy", nameOf(setting.type)));
  // As many bytes in every type, more than caches hold.
  const int64_t times = bytesOf(Type::f32) / bytesOf(setting.type);
  measureLayerNorm(setting, setting.quick ? 256 : times * 8192, 768);
  measureCrossEntropy(setting, setting.quick ? 16 : times * 256, 50257);
  measureGelu(setting, setting.quick ? 1 << 16 : times * 8192 * 3072);
  measureEmbedding(setting, setting.quick ? 256 : times * 8192, setting.quick ? 64 : 1024, setting.quick ? 512 : 50257,
                   768);
  measureAdamW(setting, setting.quick ? 1 << 20 : 124439808);
}

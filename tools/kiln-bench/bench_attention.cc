// Causal flash attention, 12 heads of 64, on a packed (B, T, 3, H, D) as the model has it. Work counted is the useful
// half: 4 · D · T(T+1)/2 operations a head forward, 2.5 times that backward. Beside it stands the rate of a 768³
// product in the same run, Kiln's own and, where there is one, the peer's.

#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "tools/kiln-bench/bench.h"

#include <cmath>
#include <fmt/format.h>

using namespace kiln;

/// q, k and v (or their gradients) as (B, H, T, D) views of one packed tensor (B, T, 3, H, D).
static TensorRef part(const Tensor &packed, int which) { return packed.ref().select(2, which).permute({0, 2, 1, 3}); }

static void measureAttention(bench::Setting &setting, int64_t B, int64_t T) {
  constexpr int64_t H = 12, D = 64, size = 768;
  const Target target = setting.target();
  float scale = 1 / std::sqrt(static_cast<float>(D));
  Tensor qkv = bench::randomTensor(setting, {B, T, 3, H, D}, 1);
  Tensor dqkv = bench::zeroTensor(setting, {B, T, 3, H, D});
  Tensor out = bench::zeroTensor(setting, {B, T, H, D}), dout = bench::randomTensor(setting, {B, T, H, D}, 2);
  Tensor lse = bench::zeroTensor(setting, {B, H, T});
  TensorRef q = part(qkv, 0), k = part(qkv, 1), v = part(qkv, 2), o = out.ref().permute({0, 2, 1, 3});
  AttentionSaved saved{q, k, v, o, lse, dout.ref().permute({0, 2, 1, 3})};
  Tensor a = bench::randomTensor(setting, {size, size}, 3), b = bench::randomTensor(setting, {size, size}, 4);
  Tensor c = bench::zeroTensor(setting, {size, size}), peerC = bench::zeroTensor(setting, {size, size});

  std::vector<bench::Contender> contenders = {
      bench::Runner(setting, planAttention(target, q, k, v, o, lse, scale)),
      bench::Runner(setting, planAttentionBackward(target, saved, part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), scale)),
      bench::Runner(setting, planMatmul(target, Layout::nn, a, b, c))};
  if (bench::hasPeerMatmul(setting))
    contenders.emplace_back([&] {
      bench::peerMatmul(false, false, size, size, size, static_cast<const float *>(a.data()), size,
                        static_cast<const float *>(b.data()), size, static_cast<float *>(peerC.data()), size);
    });
  std::vector<double> seconds = setting.measure(contenders);

  double useful = 4.0 * D * static_cast<double>(T * (T + 1) / 2) * static_cast<double>(B * H);
  double productFlops = 2.0 * size * size * size;
  for (bool backward : {false, true}) {
    double rate = useful * (backward ? 2.5 : 1) / seconds[backward ? 1 : 0] / 1e9;
    std::string shape = fmt::format("{} B={} T={} H={} D={}", backward ? "backward" : "forward", B, T, H, D);
    for (size_t peer = 2; peer < seconds.size(); ++peer)
      setting.report.add({.bench = "attention",
                          .shape = shape,
                          .metric = "gflops",
                          .value = rate,
                          .peer = peer == 2 ? "matmul" : "onednn",
                          .peerValue = productFlops / seconds[peer] / 1e9});
  }
}

void bench::benchAttention(Setting &setting) {
  setting.report.section("causal attention, beside a 768x768x768 product");
  measureAttention(setting, 4, 64);
  measureAttention(setting, 4, 65);
  if (setting.quick)
    return;
  measureAttention(setting, 1, 256);
  measureAttention(setting, 1, 1024);
}

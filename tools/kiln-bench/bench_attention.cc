// Causal flash attention, 12 heads of 64, on a packed (B, T, 3, H, D) as the model has it. Work counted is the useful
// half: 4 · D · T(T+1)/2 operations a head forward, 2.5 times that backward. Beside it stands the rate of a 768³
// product in the same run, Kiln's own and, where there is one, the peer's; beside that of narrow types also what f32
// does.

#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "tools/kiln-bench/bench.h"

#include <cmath>
#include <fmt/format.h>

using namespace kiln;

/// q, k and v (or their gradients) as (B, H, T, D) views of one packed tensor (B, T, 3, H, D).
static TensorRef part(const Tensor &packed, int which) { return packed.ref().select(2, which).permute({0, 2, 1, 3}); }
/// A (B, T, H, D) as (B, H, T, D).
static TensorRef heads(const Tensor &tensor) { return tensor.ref().permute({0, 2, 1, 3}); }

namespace {
/// The tensors of one head size, and the launches of both passes on them.
struct Attention {
  static constexpr int64_t H = 12, D = 64;

  Attention(const bench::Setting &setting, int64_t B, int64_t T)
      : qkv(bench::randomTensor(setting, {B, T, 3, H, D}, 1)), dout(bench::randomTensor(setting, {B, T, H, D}, 2)),
        dqkv(bench::zeroTensor(setting, {B, T, 3, H, D}, setting.type)),
        out(bench::zeroTensor(setting, {B, T, H, D}, setting.type)), lse(bench::zeroTensor(setting, {B, H, T})),
        forward(setting,
                planAttention(setting.target(), part(qkv, 0), part(qkv, 1), part(qkv, 2), heads(out), lse, scale)),
        backward(setting,
                 planAttentionBackward(setting.target(),
                                       {part(qkv, 0), part(qkv, 1), part(qkv, 2), heads(out), lse, heads(dout)},
                                       part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), scale)) {}

  const float scale = 1 / std::sqrt(static_cast<float>(D));
  Tensor qkv, dout, dqkv, out, lse;
  bench::Runner forward, backward;
};
} // namespace

static void measureAttention(bench::Setting &setting, int64_t B, int64_t T) {
  constexpr int64_t size = 768;
  const Target target = setting.target();
  const Attention attention(setting, B, T);
  Tensor a = bench::randomTensor(setting, {size, size}, 3), b = bench::randomTensor(setting, {size, size}, 4);
  Tensor c = bench::zeroTensor(setting, {size, size}, setting.type);
  Tensor peerC = bench::zeroTensor(setting, {size, size}, setting.type);

  std::vector<bench::Contender> contenders = {attention.forward, attention.backward,
                                              bench::Runner(setting, planMatmul(target, Layout::nn, a, b, c))};
  const auto peer = bench::peerOf(setting, {false, false, size, size, size}, a, b, peerC);
  if (peer)
    contenders.push_back(*peer);
  std::optional<Attention> wide;
  if (setting.type != Type::f32) {
    bench::Setting floats = setting;
    floats.type = Type::f32;
    wide.emplace(floats, B, T);
    contenders.insert(contenders.end(), {wide->forward, wide->backward});
  }
  const std::vector<double> seconds = setting.measure(contenders);

  const double useful =
      4.0 * Attention::D * static_cast<double>(T * (T + 1) / 2) * static_cast<double>(B * Attention::H);
  const double productRate = 2.0 * size * size * size / 1e9;
  for (const bool backward : {false, true}) {
    const double work = useful * (backward ? 2.5 : 1) / 1e9;
    bench::Row row{.bench = "attention",
                   .shape = fmt::format("{} B={} T={} H={} D={}", backward ? "backward" : "forward", B, T, Attention::H,
                                        Attention::D),
                   .metric = "gflops",
                   .value = work / seconds[backward],
                   .dtype = nameOf(setting.type)};
    const auto beside = [&](const char *name, double rate) {
      row.peer = name;
      row.peerValue = rate;
      setting.report.add(row);
    };
    beside("matmul", productRate / seconds[2]);
    if (peer)
      beside("onednn", productRate / seconds[3]);
    if (wide)
      beside("f32", work / seconds[seconds.size() - (backward ? 1 : 2)]);
  }
}

void bench::benchAttention(Setting &setting) {
  setting.report.section(fmt::format("causal attention in {}, beside a 768x768x768 product", nameOf(setting.type)));
  measureAttention(setting, 4, 64);
  measureAttention(setting, 4, 65);
  if (setting.quick)
    return;
  measureAttention(setting, 1, 256);
  measureAttention(setting, 1, 1024);
}

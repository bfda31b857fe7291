// Attention, and memory-bound kernels.

#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "tools/kiln-bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace kiln;

// --- Attention ------------------------------------------------------------------------------------------------------

// Causal flash attention, 12 heads of 64, on a packed (B, T, 3, H, D) as in the model. Only the useful half of the work
// is counted: 4 · D · T(T+1)/2 FLOPs per head forward, 2.5 times that backward. It is compared with the rate of a 768³
// GEMM in the same run, Kiln's and the peer's, if any; narrow types also with f32. Then four documents packed into a
// sequence, compared with an arbitrary mask of the same meaning.

/// q, k and v (or their gradients) as (B, H, T, D) views of one packed tensor (B, T, 3, H, D).
static TensorRef part(const Tensor &packed, int which) { return packed.ref().select(2, which).permute({0, 2, 1, 3}); }
/// A (B, T, H, D) as (B, H, T, D).
static TensorRef heads(const Tensor &tensor) { return tensor.ref().permute({0, 2, 1, 3}); }

namespace {
/// The tensors of one head size, and the launches of both passes.
struct AttentionPasses {
  static constexpr int64_t H = 12, D = 64;

  AttentionPasses(const bench::Setting &setting, int64_t B, int64_t T, const AttentionMask &mask = {})
      : qkv(bench::randomTensor(setting, {B, T, 3, H, D}, 1)), dout(bench::randomTensor(setting, {B, T, H, D}, 2)),
        dqkv(bench::zeroTensor(setting, {B, T, 3, H, D}, setting.type)),
        out(bench::zeroTensor(setting, {B, T, H, D}, setting.type)), lse(bench::zeroTensor(setting, {B, H, T})),
        forward(setting, planAttention(setting.target(), part(qkv, 0), part(qkv, 1), part(qkv, 2), heads(out), lse,
                                       scale, mask)),
        backward(setting,
                 planAttentionBackward(setting.target(),
                                       {part(qkv, 0), part(qkv, 1), part(qkv, 2), heads(out), lse, heads(dout)},
                                       part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), scale, mask)) {}

  const float scale = 1 / std::sqrt(static_cast<float>(D));
  Tensor qkv, dout, dqkv, out, lse;
  bench::Runner forward, backward;
};
} // namespace

static void measureAttention(bench::Setting &setting, int64_t B, int64_t T) {
  constexpr int64_t size = 768;
  const Target target = setting.target();
  const AttentionPasses attention(setting, B, T);
  Tensor a = bench::randomTensor(setting, {size, size}, 3), b = bench::randomTensor(setting, {size, size}, 4);
  Tensor c = bench::zeroTensor(setting, {size, size}, setting.type);
  Tensor peerC = bench::zeroTensor(setting, {size, size}, setting.type);

  std::vector<bench::Contender> contenders = {attention.forward, attention.backward,
                                              bench::Runner(setting, planMatmul(target, Layout::nn, a, b, c))};
  const auto peer = bench::oneDnnContender(setting, {false, false, size, size, size}, a, b, peerC);
  if (peer)
    contenders.push_back(*peer);
  std::optional<AttentionPasses> wide;
  if (setting.type != Type::f32) {
    bench::Setting floats = setting;
    floats.type = Type::f32;
    wide.emplace(floats, B, T);
    contenders.insert(contenders.end(), {wide->forward, wide->backward});
  }
  const std::vector<double> seconds = setting.measure(contenders);

  const double useful =
      4.0 * AttentionPasses::D * static_cast<double>(T * (T + 1) / 2) * static_cast<double>(B * AttentionPasses::H);
  const double productRate = 2.0 * size * size * size / 1e9;
  for (const bool backward : {false, true}) {
    const double work = useful * (backward ? 2.5 : 1) / 1e9;
    bench::Row row{.shape = fmt::format("{} B={} T={} H={} D={}", backward ? "backward" : "forward", B, T,
                                        AttentionPasses::H, AttentionPasses::D),
                   .metric = "gflops",
                   .value = work / seconds[backward]};
    const auto addRow = [&](const char *name, double rate) {
      row.peer = name;
      row.peerValue = rate;
      setting.report.add(row);
    };
    addRow("matmul", productRate / seconds[2]);
    if (peer)
      addRow("onednn", productRate / seconds[3]);
    if (wide)
      addRow("f32", work / seconds[seconds.size() - (backward ? 1 : 2)]);
  }
}

/// Numbers of a narrow type on the device.
template <class Number>
static Tensor uploaded(const bench::Setting &setting, const Shape &extents, Type type,
                       const std::vector<Number> &from) {
  Tensor tensor(setting.device, type, extents);
  tensor.upload(from.data(), tensor.bytes());
  return tensor;
}

/// `count` documents of equal length in each sequence, as ranges and as a mask.
static void measurePacked(bench::Setting &setting, int64_t B, int64_t T, int64_t count) {
  const int64_t length = T / count;
  std::vector<int32_t> ranges;
  std::vector<int8_t> mask;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i = 0; i < T; ++i) {
      const int64_t begin = i / length * length;
      ranges.insert(ranges.end(), {static_cast<int32_t>(begin), static_cast<int32_t>(i + 1)});
      for (int64_t j = 0; j < T && b == 0; ++j)
        mask.push_back(begin <= j && j <= i);
    }
  const Tensor rows = uploaded(setting, {B, T, 2}, i32, ranges),
               columns = uploaded(setting, {B, T, 2}, i32, queryRanges(ranges, T, T)),
               free = uploaded(setting, {1, 1, T, T}, i8, mask);
  const AttentionPasses packed(setting, B, T, {.causal = false, .ranges = rows.ref(), .queryRanges = columns.ref()}),
      masked(setting, B, T, {.causal = false, .mask = free.ref()});
  const std::vector<double> seconds =
      setting.measure({packed.forward, packed.backward, masked.forward, masked.backward});
  const double useful = 4.0 * AttentionPasses::D * static_cast<double>(length * (length + 1) / 2 * count) *
                        static_cast<double>(B * AttentionPasses::H);
  for (const bool backward : {false, true}) {
    const double work = useful * (backward ? 2.5 : 1) / 1e9;
    setting.report.add(
        {.shape = fmt::format("packed {} B={} T={}, {} documents", backward ? "backward" : "forward", B, T, count),
         .metric = "gflops",
         .value = work / seconds[backward],
         .peer = "mask",
         .peerValue = work / seconds[2 + backward]});
  }
}

void bench::benchAttention(Setting &setting) {
  setting.report.section(fmt::format("causal attention in {}, baseline: a 768x768x768 product", nameOf(setting.type)));
  measureAttention(setting, 4, 64);
  measureAttention(setting, 4, 65);
  if (setting.quick)
    return;
  measureAttention(setting, 1, 256);
  measureAttention(setting, 1, 1024);
  measurePacked(setting, 1, 1024, 4);
}

// --- Memory-bound kernels -------------------------------------------------------------------------------------------

// Memory-bound kernels: the minimum of bytes to move over the time, compared with a plain copy of as many bytes (up to
// 1 GB) in the same run.

void bench::benchLayerNorm(Setting &setting) {
  setting.report.section(fmt::format("{}: least bytes over time, baseline: a copy", nameOf(setting.type)));
  // Equal bytes for every type, more than the caches hold.
  const int64_t times = bytesOf(f32) / bytesOf(setting.type);
  KernelSizes sizes = {
      .N = times * 8192, .T = 1024, .losses = times * 256, .activations = times * 8192 * 3072, .weights = 124439808};
  if (setting.quick)
    sizes = {.N = 256, .T = 64, .losses = 16, .activations = 1 << 16, .weights = 1 << 20};
  for (const auto plans : {rowPlans, flatPlans}) {
    std::vector<std::unique_ptr<Tensor>> held;
    Operands make(makeSpace(setting, held, /*zeroed=*/false));
    for (const KernelPlan &each : plans(setting.target(), setting.type, sizes, make)) {
      if (each.bytes == 0)
        continue;
      const double copied = std::min(each.bytes, 1e9);
      const std::vector<double> seconds = setting.measure({Runner(setting, each.plan), copyOf(setting, copied)});
      setting.report.add({.shape = each.name,
                          .metric = "gb_per_s",
                          .value = each.bytes / seconds[0] / 1e9,
                          .peer = "copy",
                          .peerValue = copied / seconds[1] / 1e9});
    }
  }
}

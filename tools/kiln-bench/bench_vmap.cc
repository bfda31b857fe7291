// Measures a batch of examples as a loop of launches, as one launch by vmap, and by a manually batched kernel, with
// which the others are compared. With --only, also the first call with its compilation, and the resident memory after
// the calls.

#include "kernels/attention.h"
#include "kernels/softmax.h"
#include "tools/kiln-bench/bench.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

using namespace kiln;
using namespace kiln::bench;

/// x, y (N); out (1), their product: one program, 1024 elements at a time. With examples: x, y (B, N); out (B, 1).
template <int examples> static void dotRow(View x, View y, View out) {
  const auto at = [](const At &n) { return examples ? Offsets{program_id(0), n} : Offsets{n}; };
  Tile sums = zeros(f32, {1024});
  for (Tile n : range(0, x.dim(examples), 1024))
    sums += load(x, at(n), {1024}) * load(y, at(n), {1024});
  store(out, at(0), sum(sums));
}
static const Kernel dotKernel = kernel("dot_row", dotRow<0>), dotRowsKernel = kernel("dot_rows", dotRow<1>);

static constexpr int64_t tile = 64; // rows, columns and terms of products

/// c (M, N) = a (M, K) · b (K, N). With examples: a batch of pairs.
template <int examples> static void multiply(View a, View b, View c) {
  const auto at = [](const At &i, const At &j) { return examples ? Offsets{program_id(2), i, j} : Offsets{i, j}; };
  Tile m = program_id(0) * tile, n = program_id(1) * tile, acc = zeros(f32, {tile, tile});
  for (Tile k : range(0, a.dim(1 + examples), tile))
    acc = dot(load(a, at(m, k), {tile, tile}), load(b, at(k, n), {tile, tile}), acc);
  store(c, at(m, n), acc);
}
static const Kernel multiplyKernel = kernel("multiply", multiply<0>),
                    multiplyManyKernel = kernel("multiply_many", multiply<1>);

namespace {
using Tensors = std::vector<TensorRef>;

/// A batch: the extents of an example's tensors, the plan of one example, and the manually batched plan.
struct Batch {
  std::string name;
  int64_t examples;
  std::vector<Shape> extents;
  std::function<Plan(const Tensors &)> one, byHand;
};
} // namespace

static Batch attentionOf(const Target &target, int64_t B, int64_t T, int64_t D) {
  const auto one = [=](const Tensors &t) {
    return planAttention(target, t[0], t[1], t[2], t[3], t[4], 1 / std::sqrt(static_cast<float>(D)), {.causal = false});
  };
  const auto byHand = [one](Tensors t) {
    for (TensorRef &each : t)
      each = each.select(1, 0);
    return one(t);
  };
  const Shape heads = {1, 1, T, D};
  return {fmt::format("attention {} x {}x{}", B, T, D), B, {heads, heads, heads, heads, {1, 1, T}}, one, byHand};
}

static std::vector<Batch> batchesOf(const Target &target) {
  const auto launched = [](const Kernel &kernel, const Grid &grid) {
    return [&kernel, grid](const Tensors &t) { return Plan{{Launch{&kernel, "", grid, {t[0], t[1], t[2]}}}}; };
  };
  return {{"dot 100 x 10000",
           100,
           {{10000}, {10000}, {1}},
           launched(dotKernel, programs(1)),
           launched(dotRowsKernel, programs(100))},
          {"softmax 32 x 64x512",
           32,
           {{64, 512}, {64, 512}},
           [target](const Tensors &t) { return planSoftmax(target, t[0], t[1]); },
           [target](const Tensors &t) {
             return planSoftmax(target, t[0].reshape({32 * 64, 512}), t[1].reshape({32 * 64, 512}));
           }},
          {"matmul 16 x 128x128x128",
           16,
           {{128, 128}, {128, 128}, {128, 128}},
           launched(multiplyKernel, programs(128 / tile, 128 / tile)),
           launched(multiplyManyKernel, programs(128 / tile, 128 / tile, 16))},
          attentionOf(target, 12, 256, 64),
          attentionOf(target, 10, 10, 512), // short sequences, one wide head
          attentionOf(target, 12, 1024, 64)};
}

/// The plans of a call: one for all examples, or one for each.
static std::vector<Plan> plansOf(const std::string &way, const Batch &batch, const std::vector<Tensor> &tensors) {
  Tensors all;
  std::vector<Batched> batched;
  for (const Tensor &tensor : tensors) {
    all.push_back(tensor.ref());
    batched.push_back({tensor.ref(), 0});
  }
  if (way == "vmap")
    return {vmap(batch.one, batched)};
  if (way == "hand")
    return {batch.byHand(all)};
  std::vector<Plan> plans;
  for (int64_t example = 0; example < batch.examples; ++example) {
    Tensors own;
    for (const TensorRef &tensor : all)
      own.push_back(tensor.select(0, example));
    plans.push_back(batch.one(own));
  }
  return plans;
}

/// The process's resident memory in bytes.
static double residentBytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

static void measureBatch(Setting &setting, const Batch &batch, const std::vector<std::string> &ways) {
  std::vector<Tensor> tensors;
  for (Shape extents : batch.extents) {
    extents.insert(extents.begin(), batch.examples);
    tensors.push_back(randomTensor(setting, extents, tensors.size()));
  }
  std::vector<Contender> contenders;
  std::vector<std::shared_ptr<Tensor>> workspaces;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string &way : ways) {
    std::vector<PreparedPlan> prepared;
    for (const Plan &plan : plansOf(way, batch, tensors)) {
      workspaces.push_back(std::make_shared<Tensor>(setting.device, f32, Shape{cdiv(plan.workspaceBytes, 4)}));
      prepared.push_back(prepare(*setting.device, plan, workspaces.back()->ref()));
    }
    contenders.emplace_back([prepared = std::move(prepared)] {
      for (const PreparedPlan &plan : prepared)
        plan.run();
    });
  }
  contenders.front()();
  setting.device->synchronize();
  const std::chrono::duration<double, std::milli> cold = std::chrono::steady_clock::now() - begin;
  const std::vector<double> seconds = setting.measure(contenders);
  for (size_t i = 0; i < ways.size(); ++i) {
    Row row{.shape = batch.name + ", " + ways[i], .metric = "us", .value = seconds[i] * 1e6};
    if (ways.back() == "hand" && i + 1 < ways.size()) {
      row.peer = "hand";
      row.peerValue = seconds.back() * 1e6;
    }
    setting.report.add(row);
    if (ways.size() > 1)
      continue;
    for (const auto &[metric, value] : {std::pair("cold_ms", cold.count()), {"resident_mb", residentBytes() / 1e6}}) {
      row.metric = metric;
      row.value = value;
      setting.report.add(row);
    }
  }
}

void bench::benchVmap(Setting &setting) {
  setting.report.section("time of a batch, baseline: kernels batched by hand");
  for (const Batch &batch : batchesOf(setting.target())) {
    std::vector<std::string> ways;
    for (const char *const way : {"loop", "vmap", "hand"})
      if ((batch.name + ", " + way).find(setting.only) != std::string::npos)
        ways.emplace_back(way);
    if (!ways.empty())
      measureBatch(setting, batch, ways);
  }
}

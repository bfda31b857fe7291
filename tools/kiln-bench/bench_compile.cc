// Compile times. Every kernel is compiled at the shapes of a GPT-2 124M step on 4 × 64 tokens, seven times over: cold,
// with an empty cache on disk, and warm, from the disk. The process is warm both times: memory of earlier compilations
// is dropped, LLVM stays initialised. A pair of rows is a whole training step, all of its compilations together, on as
// many threads as the device has. The last rows are kernels such as users write who unroll loops on the host.

#include "kernels/Registry.h"
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
#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "tools/files/TemporaryFolder.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/user_kernels.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>

using namespace kiln;

namespace {

/// Operands at the sizes of the step; compiling looks at their addresses and extents only, but they are real memory.
class Operands {
public:
  explicit Operands(std::shared_ptr<Device> device) : device(std::move(device)) {}
  TensorRef operator()(const Shape &extents, Type type = Type::f32) {
    tensors.push_back(std::make_unique<Tensor>(device, type, extents));
    return tensors.back()->ref();
  }

private:
  std::shared_ptr<Device> device;
  std::vector<std::unique_ptr<Tensor>> tensors;
};

/// A disk cache of our own that is empty at first and gone at the end.
class FreshCache {
public:
  FreshCache() { setenv("KILN_CACHE", folder.path.c_str(), 1); } // read when the first kernel is compiled
  void empty() const {
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
      std::filesystem::remove_all(entry.path());
  }

private:
  tools::TemporaryFolder folder{"kiln-bench"};
};

/// Times of one thing, in milliseconds: cold, also those that processors took, and warm.
struct Times {
  std::vector<double> cold, cpu, warm;
};

/// What a compilation took, in milliseconds, and what processors took for it.
struct Spent {
  double all, cpu;
};

} // namespace

static constexpr int64_t B = 4, T = 64, N = B * T, C = 768, H = 12, D = 64, V = 50257;

static Plan matmulPlans(const Target &target, Operands &make) {
  TensorRef x = make({N, C}), w = make({C, 4 * C}), bias = make({4 * C}), y = make({N, 4 * C}), pre = make({N, 4 * C});
  TensorRef back = make({4 * C, C}), out = make({N, C}), biasC = make({C}), table = make({V, C}), logits = make({N, V});
  Plan plan = planMatmul(target, Layout::nt, x, table, logits);
  plan += planMatmul(target, Layout::nn, logits, table, out);
  plan += planMatmul(target, Layout::nt, y, w, out);
  plan += planMatmulBias(target, Layout::nn, x, w, bias, y);
  plan += planMatmulGelu(target, Layout::nn, x, w, bias, pre, y);
  plan += planMatmulResidual(target, Layout::nn, y, back, biasC, x, out);
  plan += planMatmulGeluBackward(target, Layout::nt, x, back, pre, y);
  plan += planWeightGradient(target, x, y, make({C, 4 * C}), make({4 * C}));
  return plan;
}

static Plan rowPlans(const Target &target, Operands &make) {
  TensorRef x = make({N, C}), delta = make({N, C}), out = make({N, C}), sum = make({N, C}), dx = make({N, C});
  TensorRef gamma = make({C}), beta = make({C}), mean = make({N}), rstd = make({N}), losses = make({N});
  Plan plan = planLayerNorm(target, x, gamma, beta, out, mean, rstd);
  plan += planResidualLayerNorm(target, x, delta, gamma, beta, sum, out, mean, rstd);
  plan += planLayerNormBackward(target, out, x, gamma, mean, rstd, dx, make({C}), make({C}), {.dx = true});
  TensorRef logits = make({N, V}), targets = make({N}, Type::i32);
  plan += planCrossEntropy(target, logits, targets, losses, V, 1.0f / N);
  plan += planCrossEntropyLoss(target, logits, targets, losses, V);
  plan += planSoftmax(target, x, out);
  plan += planTotal(target, losses, make({1}));
  return plan;
}

static Plan otherPlans(const Target &target, Operands &make) {
  TensorRef qkv = make({B, T, 3, H, D}), dqkv = make({B, T, 3, H, D}), o = make({B, T, H, D}), lse = make({B, H, T});
  auto part = [](const TensorRef &packed, int which) { return packed.select(2, which).permute({0, 2, 1, 3}); };
  TensorRef q = part(qkv, 0), k = part(qkv, 1), v = part(qkv, 2), heads = o.permute({0, 2, 1, 3});
  AttentionSaved saved{q, k, v, heads, lse, make({B, T, H, D}).permute({0, 2, 1, 3})};
  Plan plan = planAttention(target, q, k, v, heads, lse, 0.125f);
  plan += planAttentionBackward(target, saved, part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), 0.125f);
  TensorRef wte = make({V, C}), wpe = make({T, C}), x = make({N, C}), tokens = make({N}, Type::i32);
  plan += planEmbedding(target, tokens, wte, wpe, x, T);
  EmbeddingIndex index{make({N}, Type::i32), make({N + 1}, Type::i32), make({N}, Type::i32)};
  plan += planTokenGradient(target, index, x, wte, true);
  plan += planPositionGradient(target, x, wpe, T, false);
  TensorRef flat = make({1 << 20}), other = make({1 << 20});
  plan += planAdamW(target, flat, other, make({1 << 20}), make({1 << 20}), make({stepFields}), {.decayed = 1 << 19});
  plan += planGradNorm(target, flat, make({stepFields}));
  plan += planGelu(target, flat, other);
  plan += planGeluBackward(target, flat, other, other);
  plan += planAdd(target, flat, other, other);
  return plan;
}

/// Users' kernels, which host loops unroll.
static Plan userPlans(Operands &make) {
  using namespace bench;
  Plan plan;
  TensorRef wide = make({64, 1024}), few = make({64, 8}), points = make({64, 64}), row = make({64, 256});
  const auto add = [&](const Kernel &kernel, const Grid &grid, const std::vector<Arg> &args) {
    plan.launches.push_back({&kernel, "", grid, args});
  };
  add(topKKernel, programs(16), {wide, few, make({64, 8}, Type::i32)});
  add(fftKernel, programs(4), {points, make({64, 64}), make({64, 64}), make({64, 64})});
  TensorRef h = make({64, 256}), weights = make({4, 256, 256});
  add(lstmKernel, programs(4, 4),
      {make({64, 128}), h, make({64, 256}), make({4, 128, 256}), weights, make({4, 256}), row, make({64, 256})});
  add(sortKernel, programs(64), {row, make({64, 256})});
  return plan;
}

/// Milliseconds that the process's threads have run.
static double cpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// Compiles every launch, regions of the workspace beginning at `workspace`. What each took, in order; none for a
/// launch that an earlier one compiled as well.
static std::vector<std::optional<Spent>> compileAll(Device &device, const Plan &plan, void *workspace) {
  std::vector<std::optional<Spent>> times;
  for (const Launch &launch : plan.launches) {
    int64_t known = compileStatistics().fromMemory;
    auto begin = std::chrono::steady_clock::now();
    const double cpu = cpuMilliseconds();
    compile(device, launch, workspace);
    const Spent spent = {std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(),
                         cpuMilliseconds() - cpu};
    times.push_back(compileStatistics().fromMemory > known ? std::nullopt : std::optional(spent));
  }
  return times;
}

static void addTimes(bench::Setting &setting, const char *bench, const std::string &shape, const Times &times) {
  setting.report.add({.bench = bench, .shape = shape, .metric = "cold_ms", .value = bench::median(times.cold)});
  setting.report.add({.bench = bench, .shape = shape, .metric = "cold_cpu_ms", .value = bench::median(times.cpu)});
  setting.report.add({.bench = bench, .shape = shape, .metric = "warm_ms", .value = bench::median(times.warm)});
}

/// Rows of every kernel of the plan, and their median and maximum as `all`.
static void measureKernels(bench::Setting &setting, const FreshCache &cache, const Plan &plan, void *workspace,
                           const std::string &all) {
  std::vector<Times> times(plan.launches.size());
  for (int round = 0; round <= setting.rounds(); ++round) { // the first round warms the process and is not counted
    cache.empty();
    for (bool cold : {true, false}) {
      forgetCompiled();
      const std::vector<std::optional<Spent>> spent = compileAll(*setting.device, plan, workspace);
      for (size_t i = 0; round > 0 && i < times.size(); ++i)
        if (spent[i]) {
          (cold ? times[i].cold : times[i].warm).push_back(spent[i]->all);
          if (cold)
            times[i].cpu.push_back(spent[i]->cpu);
        }
    }
  }
  std::map<std::string, int> seen;
  std::vector<double> colds, cpu;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].cold.empty())
      continue;
    std::string name = plan.launches[i].kernel->name;
    int variant = ++seen[name];
    addTimes(setting, "compile", variant == 1 ? name : fmt::format("{} #{}", name, variant), times[i]);
    colds.push_back(bench::median(times[i].cold));
    cpu.push_back(bench::median(times[i].cpu));
  }
  for (const auto &[each, name] : {std::pair(&colds, "cold_ms"), std::pair(&cpu, "cold_cpu_ms")}) {
    std::sort(each->begin(), each->end());
    setting.report.add({.bench = "compile",
                        .shape = all,
                        .metric = fmt::format("{}_median", name),
                        .value = (*each)[each->size() / 2]});
    setting.report.add(
        {.bench = "compile", .shape = all, .metric = fmt::format("{}_max", name), .value = each->back()});
  }
}

static void measureBuiltIn(bench::Setting &setting, const FreshCache &cache) {
  Operands make(setting.device);
  Plan plan = matmulPlans(setting.target(), make);
  plan += rowPlans(setting.target(), make);
  plan += otherPlans(setting.target(), make);
  measureKernels(setting, cache, plan, make({plan.workspaceBytes}, Type::i8).data, "all kernels");
}

static void measureUsers(bench::Setting &setting, const FreshCache &cache) {
  Operands make(setting.device);
  measureKernels(setting, cache, userPlans(make), nullptr, "all users' kernels");
}

static void measureStepCompile(bench::Setting &setting, const FreshCache &cache) {
  const int64_t layers = setting.quick ? 1 : 12, vocab = setting.quick ? 256 : V;
  const Network network({.layers = layers, .heads = 12, .width = C, .context = T, .vocab = vocab});
  Times times;
  for (int round = 0; round < setting.rounds(); ++round) {
    cache.empty();
    for (bool cold : {true, false}) {
      forgetCompiled();
      Trainer trainer(setting.device, network,
                      {.batch = B, .steps = 1000, .precision = setting.precision}); // prepares its plans once
      const double before = compileStatistics().milliseconds, cpu = cpuMilliseconds();
      trainer.prepare(); // runs nothing: a simulator would take hours for a step of 124M
      (cold ? times.cold : times.warm).push_back(compileStatistics().milliseconds - before);
      if (cold)
        times.cpu.push_back(cpuMilliseconds() - cpu);
    }
  }
  addTimes(setting, "step", setting.quick ? "1 layer B=4 T=64" : "124M B=4 T=64", times);
}

void bench::benchCompile(Setting &setting) {
  FreshCache cache;
  setting.report.section("compile times, cold and from the disk");
  measureBuiltIn(setting, cache);
  measureStepCompile(setting, cache);
  setting.report.section("the same of users' kernels that host loops unroll");
  measureUsers(setting, cache);
}

// Training steps and decoding steps of GPT-2 124M.

#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/train/memory.h"
#include "models/train/trainer.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/problems.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <random>

using namespace kiln;

// --- Training steps -------------------------------------------------------------------------------------------------

// Training steps of GPT-2 124M (12 layers, 12 heads, width 768, vocabulary 50257): gradient, clipping and update. The
// speed is in model FLOPs: 6 per matrix parameter and token, plus the causal half of attention. It is compared with the
// machine's FMA peak in the same run. The process's peak memory is compared with the plan. Then the step's kernels,
// longest first, with their share of the time.

/// Tokens with the variety of text, and their successors.
static HostBatch randomBatch(int64_t tokens, int64_t vocab) {
  std::minstd_rand generator(1);
  std::vector<int32_t> inputs, targets;
  for (int64_t i = 0; i <= tokens; ++i) {
    int32_t token = static_cast<int32_t>(generator() % static_cast<uint64_t>(vocab));
    if (i < tokens)
      inputs.push_back(token);
    if (i > 0)
      targets.push_back(token);
  }
  return languageBatch(inputs, targets);
}

/// Resets the peak memory.
static void resetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// The largest resident memory since then, in bytes.
static double peakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return 1024.0 * std::stod(line.substr(6));
  return 0;
}

namespace {
/// Steps of a model with random weights, always on the same tokens.
class Steps {
public:
  Steps(const bench::Setting &setting, const Gpt2Config &config, int64_t B)
      : network(config), trainer(setting.device, network, {.batch = B, .steps = 1000, .precision = setting.precision}),
        batch(randomBatch(B * config.context, config.vocab)) {
    trainer.initialize(1);
  }
  void operator()() {
    trainer.beginStep(1e-4, ++step);
    trainer.addGradient(batch, 0);
    trainer.update();
  }

  /// Seconds of one step by kernel; launches are not overlapped.
  std::map<std::string, double> byKernel(Device &device) {
    trainer.beginStep(1e-4, ++step);
    trainer.addGradient(batch, 0);
    std::map<std::string, double> seconds;
    for (Trainer::NamedLaunch &launch : trainer.launches()) {
      device.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      launch.run.run();
      device.synchronize();
      seconds[launch.kernel] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return seconds;
  }

  const Network network;

private:
  Trainer trainer;
  const HostBatch batch;
  int64_t step = 0;
};
} // namespace

/// The time of a step by kernel: median milliseconds of several steps, and share.
static void reportKernels(bench::Setting &setting, const std::string &shape, Steps &steps) {
  std::map<std::string, std::vector<double>> found;
  for (int round = 0; round < setting.rounds(); ++round)
    for (const auto &[kernel, seconds] : steps.byKernel(*setting.device))
      found[kernel].push_back(seconds);
  std::map<std::string, double> times;
  double all = 0;
  for (const auto &[kernel, seconds] : found)
    all += times[kernel] = 1e3 * bench::median(seconds);
  addByKernel(setting, shape, times, "step", all);
}

static void measureStep(bench::Setting &setting, const std::string &name, Gpt2Config config, int64_t B) {
  const int64_t T = config.context;
  std::optional<Steps> wide;
  if (setting.type != Type::f32)
    wide.emplace(setting, config, B);
  config.type = setting.type;
  Steps steps(setting, config, B);
  resetPeakMemory(); // drawing random weights on the host takes more memory temporarily
  steps();
  const double peak = peakMemory();
  std::vector<bench::Contender> contenders = {[&] { steps(); }};
  if (setting.isHost())
    contenders.emplace_back([&] { bench::runPeak(bench::coreUnits().front(), setting.threads); });
  if (wide)
    contenders.emplace_back([&] { (*wide)(); });
  const std::vector<double> seconds = setting.measure(contenders);
  std::string shape = fmt::format("{} B={} T={}", name, B, T);
  bench::Row time{.shape = shape, .metric = "ms", .value = 1e3 * seconds[0]};
  if (wide) {
    time.peer = "f32";
    time.peerValue = 1e3 * seconds.back();
  }
  setting.report.add(time);
  setting.report.add({.shape = shape, .metric = "tokens_per_s", .value = static_cast<double>(B * T) / seconds[0]});
  bench::Row rate{.shape = shape, .metric = "gflops"};
  rate.value = flopsOfStep(config, B) / seconds[0] / 1e9;
  if (setting.isHost()) {
    rate.peer = "fma_peak";
    rate.peerValue = bench::runPeak(bench::coreUnits().front(), setting.threads) / seconds[1] / 1e9;
  }
  setting.report.add(rate);
  if (!wide) // its memory would count as the process's
    setting.report.add({.shape = shape,
                        .metric = "peak_mb",
                        .value = peak / 1e6,
                        .peer = "plan",
                        .peerValue = static_cast<double>(
                            planMemory(setting.target(), steps.network, steps.network.shape(B)).total() / 1000000)});
  reportKernels(setting, shape, steps);
}

void bench::benchStep(Setting &setting) {
  setting.report.section(
      fmt::format("training step of GPT-2 124M in {}, baseline: the FMA peak", nameOf(setting.type)));
  if (setting.quick)
    return measureStep(setting, "nano", gpt2Named("nano").config, 4);
  measureStep(setting, "124M", config124M(f32, 12, 64), 4);
  measureStep(setting, "124M", config124M(f32), 1);
  if (!setting.isHost())
    measureStep(setting, "124M", config124M(f32), 8);
}

// --- Decoding steps -------------------------------------------------------------------------------------------------

// One decoding step of GPT-2 124M with a full KV cache of 1024 positions. The rate is the bytes of weights and cache,
// each read once, over the time. It is compared with a plain copy of as many bytes in the same run. Then the kernels,
// longest first.

static void measureToken(bench::Setting &setting, const Gpt2Config &config, int64_t texts) {
  std::vector<std::unique_ptr<Tensor>> held;
  bench::Operands make(bench::makeSpace(setting, held));
  const Plan plan = bench::tokenPlan(setting.target(), config, texts, make);
  const Tensor workspace(setting.device, i8, {std::max<int64_t>(1, plan.workspaceBytes)});
  const PreparedPlan token = prepare(*setting.device, plan, workspace);
  const double bytes = bench::bytesOfToken(config, texts);

  // Runs the launches of each kernel alone. Together their weights exceed the caches, so none finds its own there.
  std::map<std::string, Plan> byKernel;
  for (const Launch &launch : plan.launches)
    byKernel[launch.kernel->name].launches.push_back(launch);
  std::vector<PreparedPlan> parts;
  std::vector<bench::Contender> contenders = {[&] { token.run(); }, bench::copyOf(setting, bytes)};
  for (auto &[kernel, part] : byKernel) {
    part.workspaceBytes = plan.workspaceBytes;
    parts.push_back(prepare(*setting.device, part, workspace));
  }
  for (const PreparedPlan &part : parts)
    contenders.emplace_back([&part] { part.run(); });
  const std::vector<double> seconds = setting.measure(contenders);

  const std::string shape = fmt::format("{} text{}, T={}", texts, texts == 1 ? "" : "s", config.context);
  setting.report.add({.shape = shape, .metric = "ms", .value = 1e3 * seconds[0]});
  setting.report.add({.shape = shape,
                      .metric = "gb_per_s",
                      .value = bytes / seconds[0] / 1e9,
                      .peer = "copy",
                      .peerValue = bytes / seconds[1] / 1e9});
  std::map<std::string, double> times;
  for (const auto &[kernel, part] : byKernel)
    times.emplace(kernel, 1e3 * seconds[2 + times.size()]);
  addByKernel(setting, shape, times, "token", 1e3 * seconds[0]);
}

void bench::benchToken(Setting &setting) {
  setting.report.section(fmt::format("one more token in {}, baseline: a copy", nameOf(setting.type)));
  const Gpt2Config config = setting.quick ? tinyModel(setting.type) : config124M(setting.type);
  for (const int64_t texts : {1, 4})
    measureToken(setting, config, texts);
}

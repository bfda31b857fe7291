// Training steps of GPT-2 124M (12 layers, 12 heads, width 768, vocabulary 50257): gradient, clipping and update. The
// speed is in model FLOPs, 6 per matrix parameter and token plus the causal half of attention, compared with the
// machine's FMA peak in the same run. The process's peak memory is compared with the plan. Then the step's kernels,
// longest first, with their share of the time.

#include "models/gpt2/network.h"
#include "models/gpt2/presets.h"
#include "models/train/memory.h"
#include "models/train/trainer.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/machine.h"
#include "tools/kiln-bench/step_plans.h"

#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <random>

using namespace kiln;

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
  addByKernel(setting, {.bench = "step", .shape = shape, .metric = "", .dtype = nameOf(setting.type)}, times, "step",
              all);
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
  const std::string dtype = nameOf(setting.type);
  bench::Row time{.bench = "step", .shape = shape, .metric = "ms", .value = 1e3 * seconds[0], .dtype = dtype};
  if (wide) {
    time.peer = "f32";
    time.peerValue = 1e3 * seconds.back();
  }
  setting.report.add(time);
  setting.report.add({.bench = "step",
                      .shape = shape,
                      .metric = "tokens_per_s",
                      .value = static_cast<double>(B * T) / seconds[0],
                      .dtype = dtype});
  bench::Row rate{.bench = "step", .shape = shape, .metric = "gflops", .dtype = dtype};
  rate.value = flopsOfStep(config, B) / seconds[0] / 1e9;
  if (setting.isHost()) {
    rate.peer = "fma_peak";
    rate.peerValue = bench::runPeak(bench::coreUnits().front(), setting.threads) / seconds[1] / 1e9;
  }
  setting.report.add(rate);
  if (!wide) // its memory would count as the process's
    setting.report.add({.bench = "step",
                        .shape = shape,
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

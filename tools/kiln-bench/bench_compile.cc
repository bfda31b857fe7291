// Compile times. Every kernel is compiled seven times for the shapes of a GPT-2 124M step on 4 × 64 tokens: cold, with
// an empty disk cache, and warm, from the disk. The process is warm in both cases: the memory cache is cleared, LLVM
// stays initialised. Two rows are for a whole training step, with all of its compilations on as many threads as the
// device has. The last rows are for typical users' kernels.

#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "tools/files/Files.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/users/users.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>

using namespace kiln;

namespace {

/// A temporary disk cache, initially empty.
class FreshCache {
public:
  FreshCache() { setenv("KILN_CACHE", folder.path.c_str(), 1); } // read at the first compilation
  void empty() const {
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
      std::filesystem::remove_all(entry.path());
  }

private:
  tools::TemporaryFolder folder{"kiln-bench"};
};

/// Times in milliseconds: cold, cold CPU time, and warm.
struct Times {
  std::vector<double> cold, cpu, warm;
};

/// Wall time and CPU time of a compilation, in milliseconds.
struct Spent {
  double all, cpu;
};

} // namespace

static constexpr int64_t B = 4, T = 64, V = 50257;

/// The process's CPU time in milliseconds.
static double cpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// Compiles every launch, with the workspace at `workspace`. Returns the times in order; none for a launch that was
/// compiled with an earlier one.
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

/// A row for every kernel of the plan, and their median and maximum as `all`.
static void measureKernels(bench::Setting &setting, const FreshCache &cache, const Plan &plan, void *workspace,
                           const std::string &all) {
  std::vector<Times> times(plan.launches.size());
  for (int round = 0; round <= setting.rounds(); ++round) { // the first round is a warm-up and is not counted
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
    setting.report.add({.shape = all, .metric = fmt::format("{}_median", name), .value = (*each)[each->size() / 2]});
    setting.report.add({.shape = all, .metric = fmt::format("{}_max", name), .value = each->back()});
  }
}

static void measureStepCompile(bench::Setting &setting, const FreshCache &cache) {
  const int64_t layers = setting.quick ? 1 : 12, vocab = setting.quick ? 256 : V;
  const Network network({.layers = layers, .heads = 12, .width = 768, .context = T, .vocab = vocab});
  Times times;
  for (int round = 0; round < setting.rounds(); ++round) {
    cache.empty();
    for (bool cold : {true, false}) {
      forgetCompiled();
      Trainer trainer(setting.device, network,
                      {.batch = B, .steps = 1000, .precision = setting.precision}); // prepares its plans
      const double before = compileStatistics().milliseconds, cpu = cpuMilliseconds();
      trainer.prepare(); // runs nothing, because a simulator would take hours for a step of 124M
      (cold ? times.cold : times.warm).push_back(compileStatistics().milliseconds - before);
      if (cold)
        times.cpu.push_back(cpuMilliseconds() - cpu);
    }
  }
  addTimes(setting, "step", setting.quick ? "1 layer B=4 T=64" : "124M B=4 T=64", times);
}

void bench::benchCompile(Setting &setting) {
  FreshCache cache;
  std::vector<std::unique_ptr<Tensor>> held;
  Operands make(makeSpace(setting, held));
  setting.report.section("compile times, cold and from the disk");
  const Plan plan = kernelPlans(
      setting.target(), f32, {.N = B * T, .T = T, .losses = B * T, .activations = 1 << 20, .weights = 1 << 20}, make);
  measureKernels(setting, cache, plan, make({plan.workspaceBytes}, i8).data, "all kernels");
  measureStepCompile(setting, cache);
  setting.report.section("the same of users' kernels");
  Plan users;
  for (const Problem &problem : userProblems(make))
    users.launches.push_back(problem.launch);
  measureKernels(setting, cache, users, nullptr, "all users' kernels");
}

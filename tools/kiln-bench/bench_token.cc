// One decoding step of GPT-2 124M with a full KV cache of 1024 positions: the bytes of weights and cache, each read
// once, over the time, compared with a plain copy of as many bytes in the same run. Then the kernels, longest first.

#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/step_plans.h"

#include <fmt/format.h>
#include <map>

using namespace kiln;

static void measureToken(bench::Setting &setting, const Gpt2Config &config, int64_t texts) {
  std::vector<std::unique_ptr<Tensor>> held;
  bench::Operands make(bench::spaceOf(setting, held));
  const Plan plan = bench::tokenPlan(setting.target(), config, texts, make);
  const Tensor workspace(setting.device, i8, {std::max<int64_t>(1, plan.workspaceBytes)});
  const PreparedPlan token = prepare(*setting.device, plan, workspace);
  const double bytes = bench::bytesOfToken(config, texts);
  const auto count = static_cast<int64_t>(bytes / 8); // a copied float is read and written: 8 bytes
  const Tensor from = bench::zeroTensor(setting, {count});
  Tensor to = bench::zeroTensor(setting, {count});

  // Runs the launches of each kernel alone. Together their weights exceed the caches, so none finds its own there.
  std::map<std::string, Plan> byKernel;
  for (const Launch &launch : plan.launches)
    byKernel[launch.kernel->name].launches.push_back(launch);
  std::vector<PreparedPlan> parts;
  std::vector<bench::Contender> contenders = {[&] { token.run(); }, bench::copyOf(setting, from, to)};
  for (auto &[kernel, part] : byKernel) {
    part.workspaceBytes = plan.workspaceBytes;
    parts.push_back(prepare(*setting.device, part, workspace));
  }
  for (const PreparedPlan &part : parts)
    contenders.emplace_back([&part] { part.run(); });
  const std::vector<double> seconds = setting.measure(contenders);

  const std::string shape = fmt::format("{} text{}, T={}", texts, texts == 1 ? "" : "s", config.context),
                    dtype = nameOf(setting.type);
  setting.report.add({.bench = "token", .shape = shape, .metric = "ms", .value = 1e3 * seconds[0], .dtype = dtype});
  setting.report.add({.bench = "token",
                      .shape = shape,
                      .metric = "gb_per_s",
                      .value = bytes / seconds[0] / 1e9,
                      .peer = "copy",
                      .peerValue = 8.0 * static_cast<double>(count) / seconds[1] / 1e9,
                      .dtype = dtype});
  std::map<std::string, double> times;
  for (const auto &[kernel, part] : byKernel)
    times.emplace(kernel, 1e3 * seconds[2 + times.size()]);
  addByKernel(setting, {.bench = "token", .shape = shape, .metric = "", .dtype = dtype}, times, "token",
              1e3 * seconds[0]);
}

void bench::benchToken(Setting &setting) {
  setting.report.section(fmt::format("one more token in {}, baseline: a copy", nameOf(setting.type)));
  const Gpt2Config config = setting.quick ? tinyModel(setting.type) : config124M(setting.type);
  for (const int64_t texts : {1, 4})
    measureToken(setting, config, texts);
}
